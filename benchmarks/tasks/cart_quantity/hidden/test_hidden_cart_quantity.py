from cart import Cart, Item


def test_the_total_counts_quantities_before_the_discount():
    cart = Cart()
    cart.add(Item("apple", 50, quantity=3))
    cart.add(Item("pear", 80))
    assert cart.total_cents() == 230
    assert cart.total_cents(10) == 207


def test_an_empty_cart_costs_nothing():
    assert Cart().total_cents() == 0
