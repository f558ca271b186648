"""What turns text into vectors, whichever model does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy takes a tenth of a second to import, and a server answers before that
    from numpy import float32
    from numpy.typing import NDArray

    Embedded = NDArray[float32]


class Embedder(Protocol):
    """One model. The same text gives the same vector, whatever is embedded beside it.

    `model` names what made a vector, so that those of two models are never compared. Safe to use from many threads.
    """

    @property
    def model(self) -> str:
        """The model's name, at most 128 characters."""

    def pieces(self, text: str) -> list[str]:
        """The text in pieces that the model takes whole, in order; one or more, none of them blank."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One row a text, each of length 1 (float32; texts x dimensions). Blank texts are allowed.

        Raises EmbeddingFailed when the model cannot be reached or answers what is no vector.
        """
