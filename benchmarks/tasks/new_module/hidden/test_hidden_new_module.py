from temperature import to_celsius, to_fahrenheit


def test_both_directions():
    assert to_fahrenheit(100) == 212
    assert to_fahrenheit(0) == 32
    assert abs(to_celsius(212) - 100) < 1e-9
