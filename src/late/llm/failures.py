"""What an error answer means: the dialects of the servers, read into one `Failure`."""

from __future__ import annotations

import email.utils
import html
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from late.errors import ContextOverflow, ProviderError
from late.llm.loose import as_int, as_list, as_object, as_text, first_int

FailureKind = Literal["overflow", "loading", "rate_limited", "server", "model_output", "lost", "final"]
"""`overflow`: the prompt does not fit. `loading`: wait. `rate_limited`, `server`, `lost` (the connection) and
`model_output` (the server could not parse what the model wrote): worth another try. `final`: the same request fails
again."""

_LONGEST_MESSAGE = 600
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed, in words for a person."""

    kind: FailureKind
    message: str
    hint: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    prompt_tokens: int | None = None
    window: int | None = None

    def as_error(self, partial: str = "") -> ProviderError:
        """The error to raise when there are no more tries; `partial` is what was streamed before."""
        if self.kind == "overflow":
            overflow = ContextOverflow(self.message, self.hint, prompt_tokens=self.prompt_tokens, window=self.window)
            overflow.partial = partial
            return overflow
        return ProviderError(self.message, self.hint, partial)


class RequestFailed(Exception):
    """Carries a `Failure` through the transport."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def read_failure(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Failure:
    """Read an error answer.

    Args:
        status: The HTTP status.
        body: The answer's body, in whatever form.
        headers: The answer's headers; names in lower case.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        payload: Any = json.loads(text)
    except ValueError:
        payload = None
    details = _details(payload)
    message = details.message if payload is not None else _plain(text)
    return _classify(status, message, details, retry_after(headers or {}))


def error_in(payload: Mapping[str, Any]) -> Failure | None:
    """The failure that a status-200 body or a stream's event tells of; `None` if it tells of none."""
    if payload.get("error") in (None, "", {}, False) and not (
        payload.get("object") == "error" or payload.get("type") == "error"
    ):
        return None
    details = _details(payload)
    return _classify(details.status or _STATUS_OF_TYPE.get(details.type, 500), details.message, details, None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server wants to be left alone: `Retry-After` as a number or as a date, or `retry-after-ms`."""
    try:
        if ms := headers.get("retry-after-ms"):
            return max(0.0, float(ms) / 1000)
        value = headers.get("retry-after", "").strip()
        if not value:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


_SPOKEN_PAUSE = re.compile(r"(?:try again|retry) in (\d+(?:\.\d+)?)\s*(ms|s|m)", re.IGNORECASE)


def _pause_in_words(message: str) -> float | None:
    """Seconds, where only the message says them: `Please try again in 1.5s`."""
    match = _SPOKEN_PAUSE.search(message)
    if not match:
        return None
    return float(match.group(1)) * {"ms": 0.001, "s": 1.0, "m": 60.0}[match.group(2).lower()]


@dataclass(frozen=True, slots=True)
class _Details:
    message: str = ""
    type: str = ""
    code: str = ""
    status: int | None = None
    fields: Mapping[str, Any] | None = None


_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "unavailable_error": 503,
    "overloaded_error": 503,
}


def _details(payload: Any) -> _Details:
    """Message, type, code and status of `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, `{"message": …}` or so."""
    if isinstance(payload, str):
        return _Details(message=_shorten(payload))
    if isinstance(payload, list):
        items = as_list(payload)
        return _details(items[0]) if items else _Details()
    whole = as_object(payload)
    error = whole.get("error")
    fields = as_object(error) or whole
    message = error if isinstance(error, str) else _message(fields) or _message(whole)
    code = fields.get("code")
    upstream = as_text(as_object(fields.get("metadata")).get("raw"))
    if upstream and upstream not in message:
        message = f"{message}: {upstream}" if message else upstream
    status = as_int(code) or as_int(fields.get("status_code"))
    return _Details(
        message=_shorten(message),
        type=as_text(fields.get("type")),
        code=as_text(code),
        status=status if status is not None and 400 <= status < 600 else None,
        fields=fields,
    )


def _message(fields: Mapping[str, Any]) -> str:
    for key in ("message", "detail", "error_description", "msg", "title"):
        value = fields.get(key)
        if isinstance(value, str) and value:
            return value
        if inner := [_message(as_object(entry)) or as_text(entry) for entry in as_list(value)]:
            return "; ".join(filter(None, inner))
        if nested := as_object(value):
            return _message(nested)
    return ""


def _plain(text: str) -> str:
    """A body that is no JSON: a web page's title, or the text itself."""
    if not text.startswith("<"):
        return _shorten(text)
    title = re.search(r"<(?:title|h1)[^>]*>(.*?)</(?:title|h1)>", text, re.IGNORECASE | re.DOTALL)
    if not title:
        return "a web page instead of an answer"
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", title.group(1))).split())[:_LONGEST_TITLE]


def _shorten(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} …"


_OVERFLOW = re.compile(
    r"exceeds? the (?:available|model'?s?(?: maximum)?|maximum) context|context size has been exceeded"
    r"|maximum context length|context[ _-]?length[ _-]?exceeded|context shift is disabled"
    r"|(?:greater|longer|larger) than the (?:model'?s? )?(?:maximum )?context|exceeds? the (?:model'?s )?context"
    r"|context (?:the )?overflows|context window|prompt is too long|input is too long"
    r"|exceeds the maximum number of tokens|max_new_tokens.{0,20}must be <=",
    re.IGNORECASE,
)
_NUMBER = r"(\d[\d,]*)"
_WINDOW_NUMBER = re.compile(
    rf"(?:maximum|available|model'?s|the) context (?:length|size|window)\D{{0,20}}{_NUMBER}"
    rf"|> {_NUMBER} maximum|tokens allowed \({_NUMBER}|must be <= {_NUMBER}|with {_NUMBER} maximum context",
    re.IGNORECASE,
)
_PROMPT_NUMBER = re.compile(
    rf"(?:request|input|prompt)\D{{0,40}}?{_NUMBER}(?: (?:input |prompt )?tokens|\))"
    rf"|(?:you requested|resulted in|contains(?: at least)?|has|Given:) {_NUMBER}"
    rf"|token count \({_NUMBER}|too long: {_NUMBER}",
    re.IGNORECASE,
)


def _first_number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(g for g in match.groups() if g).replace(",", "")) if match else None


def _classify(status: int, message: str, details: _Details, pause: float | None) -> Failure:
    words = f"{message} {details.type} {details.code}"
    if status == 413 or (status in (400, 422, 500) and _OVERFLOW.search(words)):
        return _overflow(status, message, details)
    if status == 503 and re.search(r"loading|being loaded|starting|not ready|warming", words, re.IGNORECASE):
        return Failure("loading", message or "The server loads the model.", status=status, retry_after_s=pause)
    if status in (402, 429):
        return _limited(status, words, message, _pause_in_words(message) if pause is None else pause)
    said = f": {message}" if message else "."
    if status == 500 and re.search(r"failed to parse", message, re.IGNORECASE):
        return Failure(
            "model_output",
            f"The server could not read a tool call{said}",
            "The model wrote a call that the server's parser does not take; ask again or use another model.",
            status,
        )
    if status == 500 and re.search(r"not support|unsupported", message, re.IGNORECASE):
        return Failure("final", f"The server cannot do what was asked{said}", status=status)
    if status >= 500 or status in (408, 425):
        return Failure("server", f"The server failed (status {status}){said}", SERVER_HINT, status, pause)
    return _refused(status, said)


SERVER_HINT = "Its log says why; the session is kept, so send the message again when it works."


def _overflow(status: int, message: str, details: _Details) -> Failure:
    fields = details.fields or {}
    prompt = first_int(fields, "n_prompt_tokens") or _first_number(_PROMPT_NUMBER, message)
    window = first_int(fields, "n_ctx") or _first_number(_WINDOW_NUMBER, message)
    size = f" of {prompt:,} tokens" if prompt else ""
    room = f" of {window:,} tokens" if window else ""
    return Failure(
        "overflow",
        f"The request{size} does not fit into the context window{room}.",
        "Give the server a larger window (llama-server: -c), or start a new session.",
        status,
        prompt_tokens=prompt,
        window=window,
    )


def _limited(status: int, words: str, message: str, pause: float | None) -> Failure:
    said = f": {message}" if message else "."
    # A used-up quota comes without an end of the pause; some providers call an ordinary rate limit a quota.
    if status == 402 or (pause is None and re.search(r"quota|billing|credit", words, re.IGNORECASE)):
        return Failure(
            "final",
            f"The account's quota is used up{said}",
            "Check plan and credit at the provider, or use another endpoint.",
            status,
        )
    return Failure(
        "rate_limited", f"The server asks for a pause{said}", "Wait, or use another endpoint.", status, pause
    )


def _refused(status: int, said: str) -> Failure:
    match status:
        case 401:
            what = "The server wants a valid API key"
            hint = "Set OPENAI_API_KEY to a key that this endpoint accepts."
        case 403:
            what, hint = "The server refuses access", "Check that the API key may use this model."
        case 404:
            what = "The server does not know the model or the path"
            hint = (
                "Check the model's name (the endpoint lists them at /models) and the base URL (it often ends in /v1)."
            )
        case _ if status < 400:
            what, hint = f"The server answers with a redirect (status {status})", "Use the URL that it points to."
        case _:
            what, hint = f"The server refuses the request (status {status})", ""
    return Failure("final", f"{what}{said}", hint, status)
