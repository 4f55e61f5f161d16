import unittest

from shop.cart import Cart
from shop.receipt import receipt


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(Cart().total(), 0)

    def test_single_pieces_are_added_up(self):
        cart = Cart()
        cart.add("bread")
        cart.add("milk")
        self.assertEqual(cart.total(), 320 + 129)

    def test_three_apples_cost_three_times_one_apple(self):
        cart = Cart()
        cart.add("apple", 3)
        self.assertEqual(cart.total(), 3 * 40)

    def test_the_receipt_ends_with_the_total(self):
        cart = Cart()
        cart.add("coffee", 2)
        self.assertEqual(receipt(cart).splitlines()[-1], "total 17.98 €")


if __name__ == "__main__":
    unittest.main()
