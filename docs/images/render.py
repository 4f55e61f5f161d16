"""Renders `tui.svg` for the README: a session of the tests' own, up to the moment at which a plan waits for approval.

    python docs/images/render.py

Run it again when the screen has changed.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests"))

from late.tui.app import LateApp  # noqa: E402
from support.fake_session import FakeSession, opener  # noqa: E402
from support.scenes import planned  # noqa: E402

SIZE = (100, 36)
MESSAGE = "The total of an invoice is sometimes off by one cent. Fix it."


async def main() -> None:
    """Write the picture."""
    session = FakeSession([planned()])
    app = LateApp(opener(session), directory="~/sample", first_message=MESSAGE)
    async with app.run_test(size=SIZE) as pilot:
        while not app.state.approvals:
            await pilot.pause(0.1)
        await pilot.pause(1.0)
        picture = app.export_screenshot(title="late")
    # The fonts would be fetched from elsewhere; every viewer has a monospaced one.
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    # Some renderers drop blanks at the start of a text otherwise.
    picture = picture.replace("<svg ", '<svg xml:space="preserve" ', 1)
    (HERE / "tui.svg").write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
