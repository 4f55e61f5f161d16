"""A shopping cart."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price_cents: int
    quantity: int = 1


@dataclass
class Cart:
    items: list[Item] = field(default_factory=list)

    def add(self, item: Item) -> None:
        self.items.append(item)

    def total_cents(self, discount_percent: int = 0) -> int:
        total = sum(item.price_cents for item in self.items)
        return total - total * discount_percent // 100
