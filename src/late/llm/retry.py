"""When a failed request is sent again, and how long to wait before."""

from __future__ import annotations

from dataclasses import dataclass

from late.llm.failures import Failure

MAX_RETRIES = 3
"""For failures of the server and of the connection; waits of 1, 2 and 4 seconds."""
MAX_PAUSES = 5
"""For rate limits, whose end the server knows best."""
LONGEST_PAUSE_S = 300.0
"""A server that asks for more (a daily quota) is not waited for."""
LOADING_POLL_S = 1.0
UNREACHABLE_FOR_S = 120.0
"""How long a server that went away in mid-run is waited for: a restart with a large model's load takes less."""
_BACKOFF_S = 1.0


@dataclass(slots=True)
class Retries:
    """The tries of one request."""

    count: int = 0
    """Retries so far; waiting for a model that loads is none."""
    _failed: int = 0
    _paused: int = 0

    def wait_before_next(self, failure: Failure) -> float | None:
        """Seconds to wait before the request is sent again, or `None` if it makes no sense."""
        match failure.kind:
            case "loading":
                return failure.retry_after_s if failure.retry_after_s is not None else LOADING_POLL_S
            case "rate_limited":
                self._paused += 1
                wait = failure.retry_after_s
                if self._paused > MAX_PAUSES or (wait is not None and wait > LONGEST_PAUSE_S):
                    return None
                wait = wait if wait is not None else 2 * _backoff(self._paused)
            case "server" | "lost" | "model_output":
                self._failed += 1
                limit = 1 if failure.kind == "model_output" else MAX_RETRIES
                if self._failed > limit:
                    return None
                wait = failure.retry_after_s
                wait = min(wait, LONGEST_PAUSE_S) if wait is not None else _backoff(self._failed)
            case "overflow" | "final":
                return None
        self.count += 1
        return wait


def unreachable_waits() -> list[float]:
    """Pauses between looks at a server that does not answer; their sum is `UNREACHABLE_FOR_S` or a little more."""
    waits = [0.5, 1.0, 2.0]
    while sum(waits) < UNREACHABLE_FOR_S:
        waits.append(4.0)
    return waits


def _backoff(attempt: int) -> float:
    return _BACKOFF_S * 2 ** (attempt - 1)
