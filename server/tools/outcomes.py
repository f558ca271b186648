"""What was held, and what outcomes say of a lesson."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from store.commands import ReportPositions, ValidateLesson

from ..arguments import Json, OptionalText, Strings, Word, WriteArguments, json_of
from .spec import writing


class PositionArguments(WriteArguments):
    """Arguments of report_positions."""

    positions: Annotated[
        Json,
        Field(
            description="JSON list text: symbol, quantity, average_cost, last_price, market_value, asset_type."
        ),
    ]


class ValidateArguments(WriteArguments):
    """Arguments of validate_lesson."""

    lesson_id: Annotated[str, Field(description="Id of the lesson.")]
    verdict: Annotated[
        Literal["supports", "contradicts"], Word, Field(description="What the outcomes say of it.")
    ]
    outcome_ids: Annotated[Strings, Field(description="event_ids of observed outcomes.")]
    note: Annotated[OptionalText, Field(description="Why.")] = None


TOOLS = (
    writing(
        "validate_lesson",
        "Validate a lesson",
        "Hold observed outcomes against a lesson; each counts once, claims count nothing.",
        ValidateArguments,
        lambda given: ValidateLesson(
            lesson_id=given.lesson_id,
            verdict=given.verdict,
            outcome_ids=tuple(given.outcome_ids or ()),
            note=given.note,
        ),
    ),
    writing(
        "report_positions",
        "Report positions",
        "Report everything held now; what is missing is flat.",
        PositionArguments,
        lambda given: ReportPositions(positions=json_of(given.positions, field="positions")),
    ),
)
