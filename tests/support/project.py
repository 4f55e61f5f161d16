"""Small projects and sessions over them, for tests of the engine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from late.config.settings import load_settings
from late.events import ApprovalRequested, Event
from late.session.open import open_session
from late.session.session import Decision, Session
from late.session.store import SessionStore
from support.scripted_server import call, say

CART = {
    "cart.py": (
        "class Cart:\n"
        "    def __init__(self):\n"
        "        self.items = []\n\n"
        "    def add(self, price, quantity=1):\n"
        "        self.items.append((price, quantity))\n\n"
        "    def total(self):\n"
        "        return sum(price for price, quantity in self.items)\n"
    ),
    "README.md": "# Cart\n",
    "test_cart.py": (
        "import unittest\n\nfrom cart import Cart\n\n\n"
        "class CartTest(unittest.TestCase):\n"
        "    def test_quantity(self):\n"
        "        cart = Cart()\n"
        "        cart.add(50, 3)\n"
        "        self.assertEqual(cart.total(), 150)\n\n\n"
        'if __name__ == "__main__":\n'
        "    unittest.main()\n"
    ),
}
FIXED = "sum(price * quantity for price, quantity in self.items)"
BROKEN = "sum(price for price, quantity in self.items)"
CHECK = "python3 -m unittest -q test_cart"

PLAN: dict[str, Any] = {
    "title": "Count the quantity",
    "summary": "The total ignores it.",
    "steps": [{"title": "Multiply", "files": ["cart.py"], "instruction": "Multiply by the quantity.", "verify": CHECK}],
}


SPAWN = {"agent_type": "coder", "goal": "Do step 1.", "step": 1}
EDIT = {"path": "cart.py", "search": BROKEN, "replace": FIXED}
HAPPY = [
    call("read_file", {"path": "cart.py"}),
    call("write_implementation_plan", PLAN),
    call("spawn_subagent", SPAWN),
    call("target_edit", EDIT),
    say("I multiply by the quantity now."),
    say("The total counts the quantity; the test passes."),
]
"""A model that does everything right."""


def make_project(root: Path, files: Mapping[str, str] = CART, *, git: bool = True) -> Path:
    """A folder with these files, committed."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if git:
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
            subprocess.run(
                ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *command], cwd=root, check=True
            )
    return root


class Driver:
    """A person at a session: answers questions by a rule, and keeps every event."""

    def __init__(self, session: Session, answer: Callable[[ApprovalRequested], Decision | None]) -> None:
        self.session = session
        self.events: list[Event] = []
        self._answer = answer
        session.subscribe(self._receive)

    def _receive(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, ApprovalRequested) and (decision := self._answer(event)) is not None:
            self.session.decide(event.request_id, decision)

    async def say(self, text: str) -> None:
        """Send a message and wait until the planner is idle again."""
        await self.session.submit(text)
        await self.session.wait_idle()

    def of(self, kind: type[Event]) -> list[Any]:
        """All events of a type, in order."""
        return [event for event in self.events if isinstance(event, kind)]


def yes(_: ApprovalRequested) -> Decision:
    """Approve everything."""
    return Decision(approved=True)


def no(_: ApprovalRequested) -> Decision:
    """Deny everything."""
    return Decision(approved=False)


def drive(
    root: Path,
    base_url: str,
    data: Path,
    answer: Callable[[ApprovalRequested], Decision | None] = yes,
    *,
    resume: str | None = None,
    **settings: Any,
) -> Driver:
    """A session in `root` with the model at `base_url`; native calls unless a setting says otherwise."""
    overrides: dict[str, Any] = {"main.base_url": base_url, "main.dialect": "native", **settings}
    loaded = load_settings(root, {}, overrides={**overrides, "subagent.dialect": overrides["main.dialect"]})
    store = SessionStore(data / "sessions.db")
    return Driver(open_session(loaded, root, resume=resume, store=store), answer)
