"""Fetches and builds what the tests with the real model use, so that no test has to wait for it.

What cannot be had on this machine is named; the tests that need it are skipped with the same reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from late.errors import UserError
from late.llm import artifacts, runtime
from late.llm.progress import ProgressPrinter


def main() -> int:
    """Prepare everything; the exit status is 1 if there is no model."""
    printer = ProgressPrinter(sys.stderr)
    model_is_there = attempt(printer, lambda: artifacts.fetch_model(artifacts.CODER_1_5B, printer))
    attempt(printer, lambda: artifacts.fetch_server(printer))
    attempt(printer, lambda: runtime.ensure_runtime(printer))
    return 0 if model_is_there else 1


def attempt(printer: ProgressPrinter, work: Callable[[], object]) -> bool:
    """Do it, or say why not."""
    try:
        work()
    except UserError as error:
        printer.end()
        sys.stderr.write(f"{error} {error.hint}\n")
        return False
    printer.end()
    return True


if __name__ == "__main__":
    sys.exit(main())
