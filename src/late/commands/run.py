"""`late run`: a task without a screen. The same engine and the same log as the TUI."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import Literal

from late.commands.options import chosen_session, settings_of, task_of
from late.errors import UserError
from late.events import ApprovalRequested, Event, RunFinished
from late.headless import TextPrinter, json_printer
from late.session.open import open_session
from late.session.session import Decision, Session

DONE, FAILED, WAITING, INTERRUPTED = 0, 1, 3, 130

Approve = Literal["nothing", "plan", "all"]


def run(arguments: argparse.Namespace) -> int:
    """Carry the task out and return the exit status: 0 done, 1 failed, 3 waiting for a person, 130 interrupted.

    Raises:
        LateError: the task could not be started.
    """
    task = task_of(arguments)  # before the event loop: reading stdin must end at the first Ctrl+C
    return asyncio.run(_run(arguments, task))


async def _run(arguments: argparse.Namespace, task: str | None) -> int:
    resume, directory = chosen_session(arguments)
    if task is None and resume is None:
        raise UserError("there is no task", 'Say what is to be done: late run "…", or --resume ID.')
    settings = settings_of(arguments, directory)
    for warning in settings.warnings:
        print(f"late: {warning}", file=sys.stderr)
    session = open_session(settings, directory, resume=resume)
    front = _Front(session, arguments.approve, as_json=arguments.json)
    with _signals(session, front):
        try:
            if task is not None:
                await session.submit(task)
            elif session.interrupted:
                await session.go_on()
            else:
                raise UserError(f"session {resume} has nothing left to do", "Give it a task as well.")
            await front.finished.wait()
        finally:
            await (session.suspend() if front.waiting else session.close())
    return front.status()


class _Front:
    """Prints events, answers what `--approve` covers, and knows how the run ended."""

    def __init__(self, session: Session, approve: Approve, *, as_json: bool) -> None:
        self._session = session
        self._approve = approve
        self._as_json = as_json
        self._show = json_printer() if as_json else TextPrinter()
        self._end: RunFinished | None = None
        self.waiting: ApprovalRequested | None = None
        self.stopped = False
        self.finished = asyncio.Event()
        session.subscribe(self.receive)

    def receive(self, event: Event) -> None:
        """Take one event."""
        self._show(event)
        if isinstance(event, ApprovalRequested):
            if self._approve == "all" or (self._approve == "plan" and event.kind == "plan"):
                self._session.decide(event.request_id, Decision(approved=True, by_flag=True))
            else:
                self.waiting = event
                self.finished.set()
        elif isinstance(event, RunFinished):
            self._end = event
            self.finished.set()

    def status(self) -> int:
        """The exit status; says how to go on where a person is needed."""
        if self.waiting is not None:
            self._say_how_to_go_on(self.waiting)
            return WAITING
        if self.stopped or (self._end is not None and self._end.reason == "cancelled"):
            return INTERRUPTED
        return DONE if self._end is not None and self._end.reason == "done" else FAILED

    def _say_how_to_go_on(self, request: ApprovalRequested) -> None:
        flag = "plan" if request.kind == "plan" else "all"
        print(
            f"Waiting for your approval: {request.title}\n"
            f"  approve and go on:   late run --resume {self._session.id} --approve {flag}\n"
            f"  look at it and talk: late --resume {self._session.id}",
            file=sys.stderr,
        )


class _signals:
    """Ctrl+C, SIGTERM and SIGHUP stop the session in order: children are ended, the log is closed."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, session: Session, front: _Front) -> None:
        self._session, self._front = session, front

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._SIGNALS:
            loop.add_signal_handler(number, self._stop)

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._SIGNALS:
            loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self._front.stopped = True
        self._front.finished.set()
