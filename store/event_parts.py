"""What contents of events are made of: their base, and frozen models without a type of their own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from .canonical import canonical

Strings = tuple[str, ...]


class Event(BaseModel):
    """Base of all event contents."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    type: str

    def to_content(self) -> str:
        """Canonical JSON text of the content, without the type and without absent fields."""
        return canonical(self.model_dump(mode="json", exclude_none=True, exclude={"type"})).decode()


class Alike(BaseModel):
    """A standing memory that a new one repeats nearly or seems to contradict, and in what."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    why: Literal["near_repeat", "direction", "target", "horizon", "number", "negation"]


class Covered(BaseModel):
    """One entry whose content a redaction took away, by its hash, and what of it stays: never a text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sequence: int
    event_type: str
    content_sha256: str
    kept: dict[str, Any]


class Candidate(BaseModel):
    """One memory a search considered: its version, rank and score in each channel, and the score it was ranked by.

    Scores are decimal text with four digits; a channel that did not find the memory has no rank.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: int
    source: Literal["live"] | None = None
    lexical_rank: int | None = None
    lexical_score: str | None = None
    vector_rank: int | None = None
    vector_score: str | None = None
    score: str | None = None


class Selected(BaseModel):
    """One memory that was handed over, in which version; `source` says that a run inherits it from live."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    version: int
    source: Literal["live"] | None = None


class Position(BaseModel):
    """One holding; what was not reported is missing, not zero."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    symbol: str
    quantity: str
    average_cost: str | None = None
    last_price: str | None = None
    market_value: str | None = None
    asset_type: str | None = None


class Imported(BaseModel):
    """Where an imported entry comes from, in the words of its source: content, never identity or clock.

    `source_at` is the source's own time of it and `source_recorded_at` its machine's, microseconds, UTC. `repaired`
    names what could not be kept as it stood and what stands for it; `defects` what is wrong with it in the source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    system: str
    import_id: str
    source_id: str
    source_type: str | None = None
    source_subject: str | None = None
    source_sequence: int | None = None
    source_at: int | None = None
    source_recorded_at: int | None = None
    agent: str | None = None
    model_call_id: str | None = None
    retrieval_id: str | None = None
    status: str | None = None
    follows: str | None = None
    """The memory of this ledger that it goes on from: a thesis that the source opened again after its close."""
    metadata: Any = None
    defects: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
