import greet
import users


def test_the_new_name_is_everywhere_and_the_old_one_nowhere():
    assert users.display_name(1) == "Ada Lovelace"
    assert not hasattr(users, "get_user_name")


def test_the_callers_still_work():
    assert greet.greet(2) == "Hello, Alan Turing!"
    assert greet.farewell(1) == "Bye, Ada Lovelace."
