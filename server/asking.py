"""Asking the person at the client whether a note is to be kept, in the way of either protocol era.

A yes is the client program's word for its person: it is kept as `host_confirmed` and never as a reviewer's approval.
Where nobody can be asked, or nobody answers, the note waits for a reviewer instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import ValidationError

from store.admission import ConfirmationNeeded
from store.canonical import canonical
from store.clock import format_instant
from store.render import cut_text

from .printable import plain

ASK_SECONDS: Final = 300.0
MODERN: Final = "2026-07-28"
_KEY: Final = "keep"
_SHOWN_CHARS: Final = 2_000
"""What is longer cannot be shown whole, and nobody agrees to what they were not shown."""

_REPLACED_CHARS: Final = 280
_TIMES: Final = ("review_by", "expires_at")
_SAID: Final = (
    "category", "action", "direction", "horizon", "target", "invalidation", "outcome", "evidence", "thesis_id",
)  # fmt: skip
"""What a memory of a kind says besides its text, its instrument and its tags."""

_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_KEY: {"type": "boolean", "title": "Keep it in memory", "default": True}},
    "required": [_KEY],
}

Answer: TypeAlias = Literal["confirmed", "declined", "none"]
Host: TypeAlias = Literal["none", "asks", "confirmed", "declined"]


class Asking:
    """What one call's client can be asked, and what it answered on an earlier round of the same call."""

    def __init__(self, context: Context[Any, Any] | None, name: str, arguments: Mapping[str, Any]) -> None:
        self._context = context
        self._call = [name, dict(arguments)]

    def standing(self) -> Host:
        """Whether the person has answered about this very call, else whether they can be asked."""
        if self._context is None or not self._can_ask(self._context):
            return "none"
        if not self._is_modern(self._context):
            return "asks"
        answers = self._context.input_responses or {}
        answer = answers.get(_KEY)
        # An answer counts only for the question that was put: the state is sealed, and names tool and arguments.
        if answer is None or self._context.request_state != self._digest():
            return "asks"
        return _answer(answer)

    async def ask(self, wanted: ConfirmationNeeded) -> Answer | InputRequiredResult:
        """Put the question: the answer, or the reply that has the client ask and call again.

        What is too long to be shown whole is not asked about.
        """
        context, question = self._context, _question(wanted)
        if context is None or question is None:
            return "none"
        params = ElicitRequestFormParams(message=question, requested_schema=_SCHEMA)
        if self._is_modern(context):
            requests: Any = {_KEY: ElicitRequest(params=params)}
            return InputRequiredResult(input_requests=requests, request_state=self._digest())
        with anyio.move_on_after(ASK_SECONDS):
            try:
                return _answer(
                    await context.session.elicit_form(
                        params.message, params.requested_schema, context.request_context.request_id
                    )
                )
            except (MCPError, ValidationError):  # it cannot, its end is gone, or what it says is no answer
                return "none"
        return "none"

    def _digest(self) -> str:
        """What names this very call; asked for only once its arguments were read, as odd ones have no digest."""
        return hashlib.sha256(canonical(self._call)).hexdigest()

    @staticmethod
    def _is_modern(context: Context[Any, Any]) -> bool:
        return (context.protocol_version or "") >= MODERN

    def _can_ask(self, context: Context[Any, Any]) -> bool:
        capabilities = context.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        if elicitation is None or (elicitation.form is None and elicitation.url is not None):
            return False
        return self._is_modern(context) or context.session.can_send_request


def _answer(given: object) -> Answer:
    """A yes is an accept that says so; one without a word about it, or with another, is no answer."""
    if not isinstance(given, ElicitResult):
        return "none"
    if given.action == "decline":
        return "declined"
    keep = (given.content or {}).get(_KEY) if given.action == "accept" else None
    if keep is True:
        return "confirmed"
    return "declined" if keep is False else "none"


def _question(wanted: ConfirmationNeeded) -> str | None:
    """All that is agreed to, as a person can read it; None where it is too long for that."""
    event = wanted.event
    terms = "\n".join(_terms(wanted))
    if len(event.text) > _SHOWN_CHARS or len(terms) > _SHOWN_CHARS:
        return None
    about = f" about {_on_one_line(wanted.symbol)}" if wanted.symbol else ""
    asked = f"An agent wants to keep this {wanted.kind.replace('_', ' ')}{about} in the desk's memory:"
    parts = [asked, _quoted(event.text), terms]
    if wanted.replaced is not None:
        replaced = _quoted(cut_text(wanted.replaced, _REPLACED_CHARS))
        parts.append(f"It takes the place of {getattr(event, 'supersedes', None)}:\n{replaced}")
    return "\n\n".join(part for part in parts if part)


def _terms(wanted: ConfirmationNeeded) -> Iterator[str]:
    """What is kept with the text, a line each."""
    event = wanted.event
    if event.tags:
        yield f"tags: {', '.join(map(_on_one_line, event.tags))}"
    for name in _SAID:
        said = getattr(event, name, None)
        if said is not None:
            yield f"{name}: {_on_one_line(said)}"
    for name in _TIMES:
        at = getattr(event, name, None)
        if at is not None:
            yield f"{name}: {format_instant(at)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in plain(text).split("\n"))


def _on_one_line(value: object) -> str:
    """A value in which no line can end and pass for the desk's own words."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return plain(said).replace("\n", "\\n").replace("\t", "\\t")
