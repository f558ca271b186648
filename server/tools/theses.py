"""Theses: opened, kept current while held, closed with an outcome."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from store.commands import CloseThesis, OpenThesis, UpdateThesis

from ..arguments import Integer, OptionalText, Text, Word, WriteArguments, instant_of
from .fields import ExpiresAt, ReviewBy, Symbol, Tags, ThesisId, holding
from .spec import writing

Direction = Annotated[Literal["long", "short", "neutral"] | None, Word, Field(description="Side.")]
Horizon = Annotated[OptionalText, Field(description="e.g. 3 months.")]
Target = Annotated[OptionalText, Field(description="Price or event.")]
Invalidation = Annotated[
    OptionalText, Field(description="What proves it wrong; watched if one price or date, e.g. below 205.")
]
Version = Annotated[Integer, Field(description="Fail unless this is the current version.")]


class OpenThesisArguments(WriteArguments):
    """Arguments of open_thesis."""

    text: Annotated[Text, Field(description="The thesis and its reasons.")]
    symbol: Symbol = None
    direction: Direction = None
    horizon: Horizon = None
    target: Target = None
    invalidation: Invalidation = None
    review_by: ReviewBy = None
    expires_at: ExpiresAt = None
    tags: Tags = None


class UpdateThesisArguments(WriteArguments):
    """Arguments of update_thesis."""

    thesis_id: ThesisId
    text: Annotated[Text, Field(description="The whole new wording.")]
    symbol: Symbol = None
    direction: Direction = None
    horizon: Horizon = None
    target: Target = None
    invalidation: Invalidation = None
    review_by: ReviewBy = None
    tags: Tags = None
    expected_version: Version = None


class CloseThesisArguments(WriteArguments):
    """Arguments of close_thesis."""

    thesis_id: ThesisId
    result: Annotated[OptionalText, Field(description="e.g. win, loss, flat.")] = None
    pnl: Annotated[OptionalText, Field(description="Decimal, account currency.")] = None
    return_pct: Annotated[OptionalText, Field(description="Decimal percent, e.g. -3.5.")] = None
    exit_price: Annotated[OptionalText, Field(description="Decimal.")] = None
    note: Annotated[OptionalText, Field(description="What happened.")] = None
    expected_version: Version = None


TOOLS = (
    writing(
        "open_thesis",
        "Open a thesis",
        "Open a thesis to hold while a position or idea lives.",
        OpenThesisArguments,
        lambda given: OpenThesis(
            text=given.text,
            symbol=given.symbol,
            direction=given.direction,
            horizon=given.horizon,
            target=given.target,
            invalidation=given.invalidation,
            **holding(given),
            tags=tuple(given.tags or ()),
        ),
    ),
    writing(
        "update_thesis",
        "Update a thesis",
        "Replace an open thesis' wording; what is not named stays, history is kept.",
        UpdateThesisArguments,
        lambda given: UpdateThesis(
            thesis_id=given.thesis_id,
            text=given.text,
            symbol=given.symbol,
            direction=given.direction,
            horizon=given.horizon,
            target=given.target,
            invalidation=given.invalidation,
            review_by=instant_of(given.review_by, field="review_by"),
            tags=None if given.tags is None else tuple(given.tags),
            expected_version=given.expected_version,
        ),
    ),
    writing(
        "close_thesis",
        "Close a thesis",
        "Close a thesis with its outcome. It cannot be reopened.",
        CloseThesisArguments,
        lambda given: CloseThesis(
            thesis_id=given.thesis_id,
            result=given.result,
            pnl=given.pnl,
            return_pct=given.return_pct,
            exit_price=given.exit_price,
            note=given.note,
            expected_version=given.expected_version,
        ),
    ),
)
