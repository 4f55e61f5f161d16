from inventory import Inventory


def test_restock_adds_once():
    inventory = Inventory()
    assert inventory.restock("a", 3) == 3
    assert inventory.restock("a", 2) == 5
    assert inventory.stock("a") == 5


def test_nothing_else_is_gone():
    inventory = Inventory()
    inventory.restock("a", 5)
    assert inventory.check_pallet("a") == 5
    assert inventory.move_order("zz") == 0
    assert len([name for name in dir(Inventory) if "_" in name and not name.startswith("_")]) == 25
