"""Arguments that several tools share."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from pydantic import Field

from ..arguments import Instant, OptionalName, Strings, Word, instant_of

Symbol = Annotated[OptionalName, Field(description="Instrument, e.g. AAPL.")]
ReviewBy = Annotated[Instant, Field(description="ISO time with offset.")]
ExpiresAt = Annotated[Instant, Field(description="ISO time with offset.")]
Tags = Annotated[Strings, Field(description="Short labels.")]
ActionWord = Literal["buy", "sell", "hold", "reduce", "add", "skip", "other"]
Action = Annotated[ActionWord | None, Word, Field(description="What it suggests.")]
ThesisId = Annotated[str, Field(description="Id of the thesis.")]


class Holding(Protocol):
    """Arguments that say until when a memory holds."""

    @property
    def review_by(self) -> str | None:
        """When it is due for review."""

    @property
    def expires_at(self) -> str | None:
        """When it expires."""


def holding(given: Holding) -> dict[str, int | None]:
    """When a memory is due for review and expires, in microseconds, UTC; None where that was not said."""
    return {
        "review_by": instant_of(given.review_by, field="review_by"),
        "expires_at": instant_of(given.expires_at, field="expires_at"),
    }
