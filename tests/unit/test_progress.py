from __future__ import annotations

import io

from late.llm.progress import Progress, ProgressPrinter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def reports(what: str, total: int) -> list[Progress]:
    return [Progress(what, done, total, "parts") for done in range(total + 1)]


def test_a_log_gets_one_line_at_the_beginning_and_one_at_the_end_of_each_thing():
    out = io.StringIO()
    printer = ProgressPrinter(out)
    for progress in [*reports("fetching", 22), *reports("assembling", 3), Progress("assembling", 3, 3, "parts")]:
        printer(progress)
    printer.end()

    assert out.getvalue().splitlines() == [
        "fetching: 0 of 22 parts",
        "fetching: 22 of 22 parts",
        "assembling: 0 of 3 parts",
        "assembling: 3 of 3 parts",
    ]


def test_a_terminal_gets_one_line_that_is_redrawn_and_then_left_standing():
    out = Terminal()
    printer = ProgressPrinter(out)
    for progress in reports("fetching", 22):
        printer(progress)
    printer.end()
    printer.end()

    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("fetching: 22 of 22 parts\n")


def test_a_line_is_never_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = Terminal()
    ProgressPrinter(out)(Progress("compiling llama.cpp", 1, 193, "steps", "a" * 200))

    assert len(out.getvalue().removeprefix("\r\x1b[K")) < 40


def test_each_unit_reads_as_a_person_would_say_it():
    assert str(Progress("verifying", 5e8, 1.1e9, "bytes")) == "verifying: 500 of 1100 MB"
    assert str(Progress("compiling", 3, 193, "steps", "ggml.c", 12.4)) == "compiling: 3 of 193 steps, 12 s · ggml.c"
    assert str(Progress("waiting", 3.2, None, "seconds", elapsed_s=3.2)) == "waiting: 3 s"
