"""Receipts."""

from shop.catalog import price_of


def euros(cents):
    """`1234` as `12.34 €`."""
    return f"{cents // 100}.{cents % 100:02} €"


def receipt(cart):
    """The cart as text, one line a product and the total below."""
    lines = [
        f"{quantity} x {product} at {euros(price_of(product))}"
        for product, quantity in cart.quantities.items()
    ]
    lines.append(f"total {euros(cart.total())}")
    return "\n".join(lines)
