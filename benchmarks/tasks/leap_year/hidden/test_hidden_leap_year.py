import pytest
from calendar_tools import days_in_month, is_leap_year


@pytest.mark.parametrize(("year", "leap"), [(1900, False), (2000, True), (2024, True), (2023, False)])
def test_century_years_are_leap_years_only_when_divisible_by_400(year, leap):
    assert bool(is_leap_year(year)) is leap


def test_the_lengths_of_months_follow():
    assert days_in_month(2100, 2) == 28
    assert days_in_month(2024, 4) == 30
