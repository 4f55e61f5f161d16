import pytest
from bank import Account


def test_too_much_is_refused_and_the_balance_stays():
    account = Account(5)
    with pytest.raises(ValueError, match="insufficient funds"):
        account.withdraw(6)
    assert account.balance == 5


def test_everything_can_be_withdrawn():
    account = Account(10)
    account.withdraw(10)
    assert account.balance == 0
    account.deposit(5)
    assert account.balance == 5
