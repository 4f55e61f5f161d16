"""`late session list|show|load|delete`."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from late.commands.options import directory_of, open_store
from late.commands.transcript import transcript, visible
from late.errors import LateError
from late.session.store import SessionStore, SessionSummary


def run(arguments: argparse.Namespace) -> int:
    """Do what the second word says and return the exit status."""
    if arguments.word == "load":
        return _load(arguments)
    with open_store() as store:
        match arguments.word:
            case "list":
                _list(store, arguments)
            case "show":
                _show(store, arguments)
            case _:
                _delete(store, arguments)
    return 0


def _list(store: SessionStore, arguments: argparse.Namespace) -> None:
    directory = None if arguments.all else directory_of(arguments)
    sessions = store.list(directory)
    if arguments.json:
        for session in sessions:
            print(json.dumps(_as_json(session)))
        return
    for session in sessions:
        print(_line(session, with_directory=arguments.all))
    if not sessions:
        where = "" if directory is None else f" of {directory}"
        print(f"There is no session{where} yet.", file=sys.stderr)
    elif sys.stdout.isatty():
        print("\nGo on with one: late --resume ID, or with the last: late --continue", file=sys.stderr)


def _show(store: SessionStore, arguments: argparse.Namespace) -> None:
    session_id = store.resolve(arguments.id)
    events = store.events(session_id)
    if arguments.json:
        for event in events:
            print(event.model_dump_json())
        return
    print(_line(store.summary(session_id), with_directory=True))
    for block in transcript(events):
        print(f"\n{block}")


def _load(arguments: argparse.Namespace) -> int:
    with open_store() as store:
        arguments.resume = store.resolve(arguments.id)

    from late.commands import tui

    return tui.run(arguments)


def _delete(store: SessionStore, arguments: argparse.Namespace) -> None:
    session_id = store.resolve(arguments.id)
    summary = store.summary(session_id)
    store.delete(session_id)
    _forget_snapshots(session_id, summary.directory)
    print(f"deleted {_line(summary, with_directory=True)}")


def _forget_snapshots(session_id: str, directory: Path) -> None:
    """Without their references, git removes them in time. A folder that is gone took its own along."""
    if not directory.is_dir():
        return
    import asyncio

    from late.config.paths import data_dir
    from late.workspace.snapshots import Snapshots

    try:
        asyncio.run(Snapshots(directory, data_dir() / "snapshots").forget(session_id))
    except LateError as error:
        print(f"late: the session's snapshots in {directory} could not be removed: {error}", file=sys.stderr)


def _line(session: SessionSummary, *, with_directory: bool) -> str:
    updated = datetime.fromtimestamp(session.updated_at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    parts = [session.id, updated, f"{session.messages:>4} {'message ' if session.messages == 1 else 'messages'}"]
    if with_directory:
        parts.append(visible(str(session.directory)))
    parts.append(session.title or "(no message)")
    if session.open:
        parts.append("[open]")
    return "  ".join(parts)


def _as_json(session: SessionSummary) -> dict[str, object]:
    return {
        "id": session.id,
        "directory": str(session.directory),
        "title": session.title,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "messages": session.messages,
        "open": session.open,
    }
