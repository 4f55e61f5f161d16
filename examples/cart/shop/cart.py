"""The shopping cart."""

from shop.catalog import price_of


class Cart:
    """Products and how often each was put in."""

    def __init__(self):
        self.quantities = {}

    def add(self, product, quantity=1):
        """Put `quantity` pieces of `product` into the cart."""
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        price_of(product)
        self.quantities[product] = self.quantities.get(product, 0) + quantity

    def remove(self, product):
        """Take a product out of the cart, all pieces of it."""
        del self.quantities[product]

    def total(self):
        """What the whole cart costs, in cents."""
        cents = 0
        for product in self.quantities:
            cents += price_of(product)
        return cents
