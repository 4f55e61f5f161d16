from numbers_tools import mean, median


def test_the_median_of_odd_and_even_counts():
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == 2.5


def test_the_values_keep_their_order():
    values = [2, 1]
    median(values)
    assert values == [2, 1]


def test_mean_is_as_it_was():
    assert mean([1, 2, 3]) == 2
