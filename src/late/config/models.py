"""What was found out about models and is worth remembering, such as the dialect that a probe chose."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from late.config.paths import write_private
from late.errors import StoreError


class ModelMemory:
    """Facts per endpoint and model, in one JSON file.

    The file can be deleted at any time, and one that cannot be read counts as empty: everything in it can be found
    out again. Processes that write at the same moment do not lose each other's facts.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; it need not exist, its folder must."""
        self.path = path

    def get(self, endpoint: str, model: str) -> dict[str, Any] | None:
        """What is known about a model behind an endpoint."""
        return self._read().get(endpoint, {}).get(model)

    def put(self, endpoint: str, model: str, facts: Mapping[str, Any]) -> None:
        """Remember JSON facts in place of what was known.

        Raises:
            StoreError: the file cannot be written; the old one is untouched.
        """
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                known = self._read()
                known.setdefault(endpoint, {})[model] = dict(facts)
                write_private(self.path, json.dumps(known, indent=2, sort_keys=True) + "\n")
            finally:
                os.close(lock)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}",
                "Make its folder writable, or set LATE_DATA_DIR to one that is.",
            ) from error

    def _read(self) -> dict[str, dict[str, dict[str, Any]]]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {
            endpoint: {model: facts for model, facts in _items(models) if isinstance(facts, dict)}
            for endpoint, models in _items(data)
        }


def _items(value: object) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()
