"""Inventory of a small shop."""


class Inventory:
    def __init__(self) -> None:
        self._stock: dict[str, int] = {}
        self._log: list[str] = []

    def check_pallet(self, name: str, amount: int = 1) -> int:
        """Check pallet of an article."""
        self._log.append(f"check pallet {name} {amount}")
        return self._stock.get(name, 0)

    def check_shelf(self, name: str, amount: int = 1) -> int:
        """Check shelf of an article."""
        self._log.append(f"check shelf {name} {amount}")
        return self._stock.get(name, 0)

    def check_box(self, name: str, amount: int = 1) -> int:
        """Check box of an article."""
        self._log.append(f"check box {name} {amount}")
        return self._stock.get(name, 0)

    def check_crate(self, name: str, amount: int = 1) -> int:
        """Check crate of an article."""
        self._log.append(f"check crate {name} {amount}")
        return self._stock.get(name, 0)

    def check_order(self, name: str, amount: int = 1) -> int:
        """Check order of an article."""
        self._log.append(f"check order {name} {amount}")
        return self._stock.get(name, 0)

    def reserve_pallet(self, name: str, amount: int = 1) -> int:
        """Reserve pallet of an article."""
        self._log.append(f"reserve pallet {name} {amount}")
        return self._stock.get(name, 0)

    def reserve_shelf(self, name: str, amount: int = 1) -> int:
        """Reserve shelf of an article."""
        self._log.append(f"reserve shelf {name} {amount}")
        return self._stock.get(name, 0)

    def reserve_box(self, name: str, amount: int = 1) -> int:
        """Reserve box of an article."""
        self._log.append(f"reserve box {name} {amount}")
        return self._stock.get(name, 0)

    def reserve_crate(self, name: str, amount: int = 1) -> int:
        """Reserve crate of an article."""
        self._log.append(f"reserve crate {name} {amount}")
        return self._stock.get(name, 0)

    def reserve_order(self, name: str, amount: int = 1) -> int:
        """Reserve order of an article."""
        self._log.append(f"reserve order {name} {amount}")
        return self._stock.get(name, 0)

    def release_pallet(self, name: str, amount: int = 1) -> int:
        """Release pallet of an article."""
        self._log.append(f"release pallet {name} {amount}")
        return self._stock.get(name, 0)

    def release_shelf(self, name: str, amount: int = 1) -> int:
        """Release shelf of an article."""
        self._log.append(f"release shelf {name} {amount}")
        return self._stock.get(name, 0)

    def release_box(self, name: str, amount: int = 1) -> int:
        """Release box of an article."""
        self._log.append(f"release box {name} {amount}")
        return self._stock.get(name, 0)

    def release_crate(self, name: str, amount: int = 1) -> int:
        """Release crate of an article."""
        self._log.append(f"release crate {name} {amount}")
        return self._stock.get(name, 0)

    def release_order(self, name: str, amount: int = 1) -> int:
        """Release order of an article."""
        self._log.append(f"release order {name} {amount}")
        return self._stock.get(name, 0)

    def audit_pallet(self, name: str, amount: int = 1) -> int:
        """Audit pallet of an article."""
        self._log.append(f"audit pallet {name} {amount}")
        return self._stock.get(name, 0)

    def audit_shelf(self, name: str, amount: int = 1) -> int:
        """Audit shelf of an article."""
        self._log.append(f"audit shelf {name} {amount}")
        return self._stock.get(name, 0)

    def audit_box(self, name: str, amount: int = 1) -> int:
        """Audit box of an article."""
        self._log.append(f"audit box {name} {amount}")
        return self._stock.get(name, 0)

    def audit_crate(self, name: str, amount: int = 1) -> int:
        """Audit crate of an article."""
        self._log.append(f"audit crate {name} {amount}")
        return self._stock.get(name, 0)

    def audit_order(self, name: str, amount: int = 1) -> int:
        """Audit order of an article."""
        self._log.append(f"audit order {name} {amount}")
        return self._stock.get(name, 0)

    def move_pallet(self, name: str, amount: int = 1) -> int:
        """Move pallet of an article."""
        self._log.append(f"move pallet {name} {amount}")
        return self._stock.get(name, 0)

    def move_shelf(self, name: str, amount: int = 1) -> int:
        """Move shelf of an article."""
        self._log.append(f"move shelf {name} {amount}")
        return self._stock.get(name, 0)

    def move_box(self, name: str, amount: int = 1) -> int:
        """Move box of an article."""
        self._log.append(f"move box {name} {amount}")
        return self._stock.get(name, 0)

    def move_crate(self, name: str, amount: int = 1) -> int:
        """Move crate of an article."""
        self._log.append(f"move crate {name} {amount}")
        return self._stock.get(name, 0)

    def move_order(self, name: str, amount: int = 1) -> int:
        """Move order of an article."""
        self._log.append(f"move order {name} {amount}")
        return self._stock.get(name, 0)

    def restock(self, name: str, amount: int) -> int:
        """Add amount to the stock of name and return the new stock."""
        self._stock[name] = self._stock.get(name, 0) + amount
        self._stock[name] += amount
        return self._stock[name]

    def stock(self, name: str) -> int:
        return self._stock.get(name, 0)
