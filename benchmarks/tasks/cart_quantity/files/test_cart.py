from cart import Cart, Item


def test_total_counts_quantity():
    cart = Cart()
    cart.add(Item("apple", 50, quantity=3))
    cart.add(Item("pear", 80))
    assert cart.total_cents() == 230
