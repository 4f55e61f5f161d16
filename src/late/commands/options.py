"""What the flags of a command mean, for all commands alike."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from late.config.paths import data_dir
from late.config.settings import Settings, load_settings
from late.errors import UserError
from late.session.store import SessionStore


def open_store() -> SessionStore:
    """The person's sessions.

    Raises:
        UserError: there is no folder for them.
        StoreError: the database cannot be opened.
    """
    return SessionStore(data_dir() / "sessions.db")


def directory_of(arguments: argparse.Namespace) -> Path:
    """The folder to work in: `--directory`, else the current one.

    Raises:
        UserError: it is no folder, or the current one was deleted.
    """
    chosen: Path | None = arguments.directory
    try:
        path = (chosen or Path.cwd()).expanduser().resolve()
    except FileNotFoundError as error:
        raise UserError("the current folder does not exist any more", "Change to another one first.") from error
    if not path.is_dir():
        raise UserError(f"{path} is not a folder", "Name an existing one with --directory.")
    return path


def settings_of(arguments: argparse.Namespace, directory: Path) -> Settings:
    """The settings of a run in `directory`, flags included.

    Raises:
        UserError: a flag or a variable has a value that cannot be used, or a file it names cannot be read.
    """
    overrides: dict[str, Any] = {
        "main.dialect": arguments.dialect,
        "system_prompt": _system_prompt(arguments),
        "append_system_prompt": arguments.append_system_prompt,
        "enable_bash": arguments.enable_bash,
        "enable_subagents": arguments.enable_subagents,
        "subagent_max_turns": arguments.subagent_max_turns,
    }
    if arguments.local is not None:
        overrides |= {"local": True, "local_model": arguments.local or None}
    return load_settings(directory, overrides=overrides)


def chosen_session(arguments: argparse.Namespace) -> tuple[str | None, Path]:
    """The session that `--continue` or `--resume` means (`None`: a new one), and the folder to work in.

    A session that is named is opened where it was held, unless `--directory` says otherwise.

    Raises:
        UserError: there is no such session, or its folder is gone.
        StoreError: the database cannot be read.
    """
    if not (arguments.continue_ or arguments.resume):
        return None, directory_of(arguments)
    with open_store() as store:
        if arguments.resume:
            session_id = store.resolve(arguments.resume)
            held_in = store.summary(session_id).directory
            if arguments.directory:
                return session_id, directory_of(arguments)
            if not held_in.is_dir():
                raise UserError(
                    f"the folder of session {session_id} is gone: {held_in}",
                    "Name the folder to work in with --directory.",
                )
            return session_id, held_in
        directory = directory_of(arguments)
        newest = store.newest(directory)
    if newest is None:
        raise UserError(
            f"there is no session in {directory} yet", "`late session list --all` shows those of other folders."
        )
    return newest, directory


def task_of(arguments: argparse.Namespace) -> str | None:
    """The task of `late run`; `-` means standard input. `None` where there is only a session to go on with.

    Raises:
        UserError: the task is empty.
    """
    given: str | None = arguments.task
    if given is None:
        return None
    task = sys.stdin.buffer.read().decode("utf-8", "replace") if given == "-" else given
    if not task.strip():
        raise UserError("the task is empty", 'Say what is to be done: late run "…"')
    return task


def _system_prompt(arguments: argparse.Namespace) -> str | None:
    path: Path | None = arguments.system_prompt_file
    if path is None:
        return arguments.system_prompt
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--system-prompt-file {path} cannot be read: {error}") from error
