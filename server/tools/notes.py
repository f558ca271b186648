"""Notes, proposals, risk notes and lessons: what any agent may add."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from store.commands import NoteRisk, Propose, ProposeLesson, Remember

from ..arguments import (
    Json,
    OptionalId,
    OptionalText,
    Strings,
    Text,
    WriteArguments,
    json_of,
)
from .fields import Action, ExpiresAt, ReviewBy, Symbol, Tags, holding
from .spec import writing


class RememberArguments(WriteArguments):
    """Arguments of remember."""

    text: Annotated[Text, Field(description="What to remember, on its own.")]
    category: Annotated[OptionalText, Field(description="e.g. preference, fact.")] = None
    tags: Tags = None
    symbol: Symbol = None
    supersedes: Annotated[OptionalId, Field(description="Id of your note it replaces.")] = None
    review_by: ReviewBy = None
    expires_at: ExpiresAt = None


class ProposalArguments(WriteArguments):
    """Arguments of remember_proposal."""

    text: Annotated[Text, Field(description="The proposal and why.")]
    symbol: Symbol = None
    action: Action = None
    tags: Tags = None
    review_by: ReviewBy = None
    expires_at: ExpiresAt = None


class RiskNoteArguments(WriteArguments):
    """Arguments of remember_risk_note."""

    text: Annotated[Text, Field(description="The danger and what would show it.")]
    symbol: Symbol = None
    tags: Tags = None
    review_by: ReviewBy = None
    expires_at: ExpiresAt = None


class LessonArguments(WriteArguments):
    """Arguments of remember_lesson."""

    text: Annotated[Text, Field(description="The lesson as a rule.")]
    symbol: Symbol = None
    tags: Tags = None
    outcome: Annotated[Json, Field(description="Claimed outcome as JSON object text.")] = None
    review_by: ReviewBy = None
    expires_at: ExpiresAt = None


def _strings(given: Strings) -> tuple[str, ...]:
    return tuple(given or ())


TOOLS = (
    writing(
        "remember",
        "Remember",
        "Keep a note for later. Not for decisions, theses, lessons or risks: they have their own tools.",
        RememberArguments,
        lambda given: Remember(
            text=given.text,
            category=given.category,
            tags=_strings(given.tags),
            symbol=given.symbol,
            supersedes=given.supersedes,
            **holding(given),
        ),
    ),
    writing(
        "remember_proposal",
        "Propose",
        "Record a trade idea for others to weigh. It decides nothing.",
        ProposalArguments,
        lambda given: Propose(
            text=given.text,
            symbol=given.symbol,
            action=given.action,
            tags=_strings(given.tags),
            **holding(given),
        ),
    ),
    writing(
        "remember_risk_note",
        "Note a risk",
        "Record a danger that later decisions must see.",
        RiskNoteArguments,
        lambda given: NoteRisk(
            text=given.text, symbol=given.symbol, tags=_strings(given.tags), **holding(given)
        ),
    ),
    writing(
        "remember_lesson",
        "Propose a lesson",
        "Propose a lesson from an outcome. It stays proposed until observed outcomes or a person confirm it.",
        LessonArguments,
        lambda given: ProposeLesson(
            text=given.text,
            symbol=given.symbol,
            tags=_strings(given.tags),
            outcome=json_of(given.outcome, field="outcome"),
            **holding(given),
        ),
    ),
)
