"""Which variables change what a command does."""

from __future__ import annotations

import re
from typing import Final

_HARMLESS_PREFIX: Final = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|COLUMNS|LINES|TERM|GIT_TERMINAL_PROMPT"
    r"|GIT_OPTIONAL_LOCKS|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|CI|DEBIAN_FRONTEND"
)
_HARMLESS_NAME: Final = re.compile(
    r"[a-z_][a-z0-9_]*(?<!_proxy)|[A-Z]|FILES?|DIRS?|NAMES?|SRC|BASE|ROOT|COUNT|VERSION|BRANCH|COMMIT|RESULT|OUTPUT|PATTERN"
)


def is_harmless_prefix(name: str, value: str) -> bool:
    """Whether a variable that is set for one command changes no more than how its output looks."""
    return bool(_HARMLESS_PREFIX.fullmatch(name)) or (name in {"GIT_PAGER", "PAGER"} and value in {"cat", ""})


def is_harmless_name(name: str) -> bool:
    """Whether no program looks at a variable: those that a shell passes on when they change have upper-case names."""
    return bool(_HARMLESS_NAME.fullmatch(name) or _HARMLESS_PREFIX.fullmatch(name))
