"""The command line. Standard library only: a command's module is imported when it is chosen.

Exit statuses: 0 done, 1 failed, 2 wrong usage, 3 waiting for a person, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from late import __version__
from late.errors import LateError, UserError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_WAITING = 3
EXIT_INTERRUPTED = 130

_EXAMPLES = """\
examples:
  late                                  open the terminal interface here
  late --continue                       go on with the newest session of this folder
  late --prompt "explain src/app.py"    open it and send a first message
  late --local                          run the model in this process, without a server
  late run "fix the failing test"       without the interface; stops where a person is needed
  late run --approve all --json -       read the task from stdin, print one event a line
  late session list                     what was done in this folder
  late undo                             take back what the last step changed

environment:
  OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL
                                        the model server (default: http://localhost:8080)
  LATE_SUBAGENT_BASE_URL, LATE_SUBAGENT_API_KEY, LATE_SUBAGENT_MODEL
                                        another one for subagents
  LATE_DATA_DIR                         where sessions are kept

exit status: 0 done, 1 failed, 2 wrong usage, 3 waiting for a person, 130 interrupted
"""
_RUN_EXAMPLES = """\
examples:
  late run "add a --verbose flag"               plans, prints the plan, and waits for approval (exit status 3)
  late run --resume ID --approve plan           goes on with it, the plan approved
  late run --approve all "fix the failing test" approves the plan and what tools ask for
  late run --json - < task.md                   reads the task from stdin, prints one event a line
"""
_SESSION_EXAMPLES = """\
examples:
  late session list --all
  late session show 20260929-101500 --json
An id may be shortened to a beginning that only one session has, or to its last part.
"""
_UNDO_EXAMPLES = """\
examples:
  late undo                  the last step of the newest session of this folder
  late undo --step 2         another step of it
  late undo 3f2a --list      the steps of a session that can be undone

exit status: 0 all files were put back, 1 some were left alone
"""
_WORKTREE_EXAMPLES = """\
examples:
  late worktree create ../fix-login             on a new branch `fix-login`
  late worktree create ../review main~2-fixes   on an existing branch, or a new one of that name
  late worktree remove ../fix-login
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `late` with these arguments (those of the process by default) and return its exit status."""
    _tolerate_any_locale()
    arguments = parse(sys.argv[1:] if argv is None else argv)
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output is gone; the interpreter must not complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except LateError as error:
        print(f"late: {error}", file=sys.stderr)  # noqa: T201
        if error.hint:
            print(f"      {error.hint}", file=sys.stderr)  # noqa: T201
        return EXIT_USAGE if isinstance(error, UserError) else EXIT_FAILED
    return status


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command != "tui" and (arguments.continue_ or arguments.prompt):
        flag = "--continue" if arguments.continue_ else "--prompt"
        raise UserError(f"{flag} does not go with `late {arguments.command}`", "`late --help` shows what goes.")
    match arguments.command:
        case "run":
            from late.commands import run

            return run.run(arguments)
        case "session":
            from late.commands import session

            return session.run(arguments)
        case "undo":
            from late.commands import undo

            return undo.run(arguments)
        case "worktree":
            from late.commands import worktree

            return worktree.run(arguments)
        case _:
            from late.commands import tui

            return tui.run(arguments)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line. `command` says which module of `late.commands` is meant.

    Raises:
        SystemExit: with status 2 and a message on stderr for a wrong one; with 0 after `--help` and `--version`.
    """
    return _grammar().parse_args(_with_explicit_local(argv))


def _grammar() -> argparse.ArgumentParser:
    top = _Parser(
        prog="late",
        description="A local-first coding agent: it plans, you approve, short-lived coders do the steps.",
        epilog=_EXAMPLES,
    )
    top.add_argument("--version", action="version", version=f"late {__version__}")
    _add_common(top)
    _add_engine(top)
    which = top.add_mutually_exclusive_group()
    which.add_argument(
        "--continue", dest="continue_", action="store_true", help="open the newest session of this folder"
    )
    which.add_argument("--resume", metavar="ID", help="open this session")
    top.add_argument("--prompt", metavar="TEXT", help="send TEXT as soon as the interface is up")
    top.set_defaults(
        command="tui",
        continue_=False,
        resume=None,
        prompt=None,
        directory=None,
        **dict.fromkeys(_ENGINE_FLAGS),
    )

    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    _add_run(commands)
    _add_session(commands)
    _add_undo(commands)
    _add_worktree(commands)
    return top


class _Parser(argparse.ArgumentParser):
    """No abbreviated flags: a script that uses one would change its meaning when a flag is added."""

    def __init__(self, **options: Any) -> None:
        shown: dict[str, Any] = {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**(shown | options))


class _Commands(Protocol):
    def add_parser(self, name: str, **options: Any) -> _Parser: ...


_ENGINE_FLAGS = (
    "local",
    "dialect",
    "system_prompt",
    "system_prompt_file",
    "append_system_prompt",
    "enable_bash",
    "enable_subagents",
    "subagent_max_turns",
)
"""Flags that change settings; `None` where they are not given."""


def _add_common(target: argparse.ArgumentParser) -> None:
    # SUPPRESS: a subcommand's own default must not undo what stands before the subcommand.
    target.add_argument(
        "-C",
        "--directory",
        metavar="DIR",
        type=Path,
        default=argparse.SUPPRESS,
        help="work in DIR instead of the current folder",
    )


def _add_engine(target: argparse.ArgumentParser) -> None:
    group = target.add_argument_group("model and agents")
    unset = argparse.SUPPRESS
    group.add_argument(
        "--local",
        nargs="?",
        const="",
        metavar="MODEL.gguf",
        default=unset,
        help="run the model in this process: the named file, the one in the settings, or the built-in default",
    )
    group.add_argument(
        "--dialect",
        choices=("auto", "native", "constrained", "plain"),
        default=unset,
        help="how tool calls travel; `auto` finds out once per model",
    )
    prompt = group.add_mutually_exclusive_group()
    prompt.add_argument("--system-prompt", metavar="TEXT", default=unset, help="replace the planner's prompt")
    prompt.add_argument("--system-prompt-file", metavar="FILE", type=Path, default=unset, help="the same, from a file")
    group.add_argument(
        "--append-system-prompt", metavar="TEXT", default=unset, help="add TEXT at the end of the planner's prompt"
    )
    group.add_argument(
        "--no-bash", dest="enable_bash", action="store_false", default=unset, help="no agent has a shell"
    )
    group.add_argument(
        "--no-subagents",
        dest="enable_subagents",
        action="store_false",
        default=unset,
        help="the planner works alone and changes nothing",
    )
    group.add_argument(
        "--subagent-max-turns", metavar="N", type=_positive, default=unset, help="stop a subagent after N turns"
    )


def _add_run(commands: _Commands) -> None:
    run = commands.add_parser(
        "run",
        help="do a task without the interface",
        description="Do a task without the interface: the same engine, the same log.",
        epilog=_RUN_EXAMPLES,
    )
    run.add_argument("task", nargs="?", help="what to do; `-` reads it from stdin")
    run.add_argument("--json", action="store_true", help="print one event a line as JSON")
    run.add_argument(
        "--approve",
        choices=("nothing", "plan", "all"),
        default="nothing",
        help="what is approved without asking (default: nothing: stop there with exit status 3)",
    )
    run.add_argument("--resume", metavar="ID", default=argparse.SUPPRESS, help="go on with this session")
    _add_common(run)
    _add_engine(run)
    run.set_defaults(command="run")


def _add_session(commands: _Commands) -> None:
    session = commands.add_parser(
        "session",
        help="list, show, open and delete sessions",
        description="What was done: every session is kept until it is deleted.",
        epilog=_SESSION_EXAMPLES,
    )
    session.set_defaults(command="session")
    words = session.add_subparsers(
        title="commands", metavar="COMMAND", dest="word", required=True, parser_class=_Parser
    )

    listing = words.add_parser("list", help="sessions of this folder, the newest last")
    listing.add_argument("--all", action="store_true", help="of all folders")
    listing.add_argument("--json", action="store_true", help="one session a line as JSON")
    show = words.add_parser("show", help="print a session")
    show.add_argument("id", metavar="ID")
    show.add_argument("--json", action="store_true", help="print its events as they are stored, one a line")
    load = words.add_parser("load", help="open a session in the interface")
    load.add_argument("id", metavar="ID")
    _add_engine(load)
    delete = words.add_parser("delete", help="delete a session for good")
    delete.add_argument("id", metavar="ID")
    for word in (listing, show, load, delete):
        _add_common(word)


def _add_undo(commands: _Commands) -> None:
    undo = commands.add_parser(
        "undo",
        help="take back what a step changed",
        description="Put the files of a step back as they were before it. What was changed since is left alone.",
        epilog=_UNDO_EXAMPLES,
    )
    undo.add_argument("resume", metavar="SESSION", nargs="?", help="default: the newest session of this folder")
    which = undo.add_mutually_exclusive_group()
    which.add_argument(
        "--step", metavar="N", type=_positive, help="this step; default: the last one that changed something"
    )
    which.add_argument("--list", action="store_true", help="the steps that can be undone, the newest last")
    _add_common(undo)
    undo.set_defaults(command="undo")


def _add_worktree(commands: _Commands) -> None:
    worktree = commands.add_parser(
        "worktree",
        help="create, list and remove git worktrees",
        description="Further working copies of this repository, each on a branch of its own.",
        epilog=_WORKTREE_EXAMPLES,
    )
    worktree.set_defaults(command="worktree")
    words = worktree.add_subparsers(
        title="commands", metavar="COMMAND", dest="word", required=True, parser_class=_Parser
    )

    create = words.add_parser("create", help="add a worktree")
    create.add_argument("path", metavar="PATH", type=Path, help="a folder that does not exist yet")
    create.add_argument("branch", metavar="BRANCH", nargs="?", help="default: a new branch named like the folder")
    listing = words.add_parser("list", help="all worktrees")
    listing.add_argument("--json", action="store_true", help="one worktree a line as JSON")
    remove = words.add_parser("remove", help="remove a worktree that holds no unsaved work")
    remove.add_argument("path", metavar="PATH", type=Path)
    remove.add_argument("--force", action="store_true", help="even when uncommitted work is lost")
    active = words.add_parser("active", help="the worktree of this folder")
    for word in (create, listing, remove, active):
        _add_common(word)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _with_explicit_local(argv: Sequence[str]) -> list[str]:
    """`--local` takes the next word only when that is a model file, so that `run --local "fix it"` keeps its task."""
    words = list(argv)
    end = words.index("--") if "--" in words else len(words)
    for at in range(end):
        if words[at] == "--local" and not (at + 1 < end and words[at + 1].lower().endswith(".gguf")):
            words[at] = "--local="
    return words


def _tolerate_any_locale() -> None:
    """A terminal that cannot show a character gets a replacement instead of an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
