from shop import tax
from shop.invoice import total_line


def test_the_rate_is_19_percent_everywhere():
    assert tax.VAT_PERCENT == 19
    assert total_line(1000) == "11.90 EUR"
