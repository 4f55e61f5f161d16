"""What is for sale."""

PRICES = {
    "apple": 40,
    "bread": 320,
    "coffee": 899,
    "milk": 129,
}


def price_of(product):
    """Price of one piece in cents; KeyError for what is not for sale."""
    return PRICES[product]
