"""`late`: the terminal interface. Only what its first screen needs is imported before that screen is painted."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from typing import TYPE_CHECKING

from late.errors import UserError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from late.config.settings import Settings
    from late.tui.link import Opened


def run(arguments: argparse.Namespace) -> int:
    """Open the interface and return the exit status.

    Raises:
        UserError: there is no terminal.
        LateError: the session could not be opened.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("the interface needs a terminal", 'Without one: late run "what is to be done"')

    if arguments.local is not None:
        _prepare_local(arguments.local)

    from late.tui.app import LateApp
    from late.tui.theme import chosen_theme

    app = LateApp(
        _Opener(arguments),
        directory=_shown_directory(arguments),
        first_message=arguments.prompt,
        theme=chosen_theme(os.environ),
    )
    app.run()
    if app.failure is not None:
        raise app.failure
    if app.link.session_id is not None:
        sys.stdout.write(f"Session {app.link.session_id} is kept: late --continue goes on with it.\n")
    return app.return_code or 0


def _prepare_local(model: str | None) -> None:
    """Fetch and build what the in-process runtime needs while the terminal can still show how it goes."""
    from pathlib import Path

    from late.llm.local import prepare_local
    from late.llm.progress import ProgressPrinter

    printer = ProgressPrinter(sys.stderr)
    try:
        prepare_local(Path(model).expanduser() if model else None, printer)
    finally:
        printer.end()


class _Opener:
    """Opens sessions as the flags say: settings and imports in a thread, the session on the event loop."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments

    async def __call__(self, *, fresh: bool = False) -> Opened:
        settings, directory, session_id = await asyncio.to_thread(self._prepare)
        from late.session.open import open_session
        from late.tui.link import Opened

        session = open_session(settings, directory, resume=None if fresh else session_id)
        return Opened(session, settings.warnings, settings.theme, settings.mouse)

    def _prepare(self) -> tuple[Settings, Path, str | None]:
        importlib.import_module("late.session.open")
        from late.commands.options import chosen_session, settings_of

        session_id, directory = chosen_session(self._arguments)
        return settings_of(self._arguments, directory), directory, session_id


def _shown_directory(arguments: argparse.Namespace) -> str:
    """The folder as a person writes it, as long as the session has not said otherwise."""
    chosen: Path | None = arguments.directory
    try:
        path = str(chosen.expanduser().absolute()) if chosen else os.getcwd()  # noqa: PTH109 - pathlib is not needed yet
    except OSError:
        return "?"
    home = os.path.expanduser("~")  # noqa: PTH111
    return "~" + path[len(home) :] if home != "/" and (path + "/").startswith(home + "/") else path
