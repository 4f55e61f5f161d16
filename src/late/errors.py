"""The errors that a person or a model is told about.

    LateError
    ├── UserError       a wrong flag, setting or file; one line for the person, exit status 2
    ├── ProviderError   the endpoint; `partial` keeps what was streamed
    │   └── ContextOverflow
    ├── ToolError       told to the model, which may act on it
    ├── PlanError       a plan that cannot be read; told to whoever wrote it
    └── StoreError      the session log

Anything else is a bug and is not caught, except at the outermost frame.
"""

from __future__ import annotations


class LateError(Exception):
    """What happened, to what; `hint` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UserError(LateError):
    """A wrong flag, setting or file."""


class ProviderError(LateError):
    """A request failed for good, retries included."""

    def __init__(self, message: str, hint: str = "", partial: str = "") -> None:
        super().__init__(message, hint)
        self.partial = partial


class ContextOverflow(ProviderError):
    """The prompt does not fit into the served window; the numbers are the server's where it gave them."""

    def __init__(
        self, message: str, hint: str = "", *, prompt_tokens: int | None = None, window: int | None = None
    ) -> None:
        super().__init__(message, hint)
        self.prompt_tokens = prompt_tokens
        self.window = window


class ToolError(LateError):
    """The call cannot be done as asked: what is wrong, and what to do instead."""


class PlanError(LateError):
    """A plan's text does not have the form that `render_plan` writes."""


class StoreError(LateError):
    """The session log cannot be read or written."""
