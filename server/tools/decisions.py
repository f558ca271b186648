"""Decisions: what was decided and on what evidence."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from store.commands import Decide

from ..arguments import Json, OptionalId, Text, Word, WriteArguments, json_of
from .fields import ActionWord, Symbol, Tags
from .spec import writing


class DecisionArguments(WriteArguments):
    """Arguments of remember_decision."""

    text: Annotated[Text, Field(description="The decision and its reasons.")]
    action: Annotated[ActionWord, Word, Field(description="What was decided.")]
    symbol: Symbol = None
    evidence: Annotated[Json, Field(description="Dated evidence as JSON object text.")] = None
    tags: Tags = None
    thesis_id: Annotated[OptionalId, Field(description="Thesis it follows.")] = None
    retrieval_id: Annotated[OptionalId, Field(description="Search it rests on.")] = None


TOOLS = (
    writing(
        "remember_decision",
        "Record a decision",
        "Record a trading decision, also to hold or skip. Search memory first and name the retrieval_id.",
        DecisionArguments,
        lambda given: Decide(
            text=given.text,
            action=given.action,
            symbol=given.symbol,
            evidence=json_of(given.evidence, field="evidence"),
            tags=tuple(given.tags or ()),
            thesis_id=given.thesis_id,
            retrieval_id=given.retrieval_id,
        ),
    ),
)
