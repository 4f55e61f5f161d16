from shop.money import format_cents
from shop.tax import vat


def total_line(cents: int) -> str:
    return format_cents(cents + vat(cents))
