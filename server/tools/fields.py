"""Arguments that several tools share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..arguments import OptionalName, Strings, Word

Symbol = Annotated[OptionalName, Field(description="Instrument, e.g. AAPL.")]
Tags = Annotated[Strings, Field(description="Short labels.")]
ActionWord = Literal["buy", "sell", "hold", "reduce", "add", "skip", "other"]
Action = Annotated[ActionWord | None, Word, Field(description="What it suggests.")]
ThesisId = Annotated[str, Field(description="Id of the thesis.")]
