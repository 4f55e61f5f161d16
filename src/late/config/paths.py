"""Where `late` keeps its own files. Never the current folder, whatever HOME says.

| folder | holds | default on Linux | moved by |
|---|---|---|---|
| data | sessions, locks, remembered models | `~/.local/share/late` | `LATE_DATA_DIR`, `XDG_DATA_HOME` |
| config | `config.json` | `~/.config/late` | `XDG_CONFIG_HOME` |
| cache | what can be fetched or built again | `~/.cache/late` | `XDG_CACHE_HOME` |

A HOME that is unset, empty, relative or no folder is passed over for the home folder of the user database
(`/etc/passwd`); where that has none either, only the variables of the last column help.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path, PurePath
from typing import Literal

from late.errors import UserError

_Kind = Literal["data", "config", "cache"]
_BELOW_HOME: dict[_Kind, str] = (
    {"data": "Library/Application Support", "config": "Library/Application Support", "cache": "Library/Caches"}
    if sys.platform == "darwin"
    else {"data": ".local/share", "config": ".config", "cache": ".cache"}
)
"""What platformdirs uses below the home folder; needed where HOME cannot be used."""


def home_dir() -> Path:
    """The person's real home folder: HOME where it is an absolute path of a folder, else the user database's.

    Raises:
        UserError: neither names an existing folder.
    """
    for candidate in (os.environ.get("HOME", ""), _passwd_home()):
        if _is_folder(candidate):
            return Path(candidate)
    raise UserError(
        "there is no home folder: HOME is unset or names no folder, and the user database has none either",
        "Set HOME to an existing folder, or LATE_DATA_DIR to a folder for late's own files.",
    )


def data_dir() -> Path:
    """The folder of sessions and other data, created if need be (mode 0700).

    Raises:
        UserError: it cannot be located or created.
    """
    chosen = os.environ.get("LATE_DATA_DIR", "")
    path = Path(chosen).expanduser().absolute() if chosen else _platform_dir("data")
    return _created(path, "LATE_DATA_DIR")


def config_dir() -> Path:
    """The folder of the person's `config.json`, created if need be (mode 0700).

    Raises:
        UserError: it cannot be located or created.
    """
    return _created(_platform_dir("config"), "XDG_CONFIG_HOME")


def cache_dir() -> Path:
    """The folder for what can be fetched or built again, created if need be (mode 0700).

    Raises:
        UserError: it cannot be located or created.
    """
    return _created(_platform_dir("cache"), "XDG_CACHE_HOME")


def user_config_file() -> Path:
    """Path of the person's settings; nothing is created.

    Raises:
        UserError: there is no home folder.
    """
    return _platform_dir("config") / "config.json"


def project_config_file(directory: Path) -> Path:
    """Path of the settings that a project brings along."""
    return directory / ".late" / "config.json"


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically: no reader ever sees half of it. Its mode is 0600.

    Raises:
        OSError: it cannot be written; the old file is untouched.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _passwd_home() -> str:
    try:
        import pwd
    except ImportError:  # not a POSIX system
        return str(Path.home())
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _platform_dir(kind: _Kind) -> Path:
    from platformdirs import PlatformDirs

    xdg = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    if PurePath(xdg).is_absolute() or _is_folder(os.environ.get("HOME", "")):
        dirs = PlatformDirs("late", appauthor=False)
        return {"data": dirs.user_data_path, "config": dirs.user_config_path, "cache": dirs.user_cache_path}[kind]
    return home_dir() / _BELOW_HOME[kind] / "late"


def _is_folder(path: str) -> bool:
    return PurePath(path).is_absolute() and Path(path).is_dir()


def _created(path: Path, variable: str) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the folder {path} cannot be created: {error.strerror or error}",
            f"Make it writable, or set {variable} to a folder that can be written.",
        ) from error
    return path
