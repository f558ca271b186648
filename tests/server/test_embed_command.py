"""`deskbook embed` as a process: all there is, once, on from where it was stopped, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from store import Book, Caller, Filter
from store.commands import OpenThesis, Remember, UpdateThesis
from store.embedding.bundled import MODEL, Bundled
from store.embedding.loading import Encoder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GUARD = 120.0
START = 1_772_461_800_000_000
DONE = f"embedded with {MODEL}; every text has its vectors"
Start = Callable[..., "subprocess.Popen[str]"]
Embed = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    """Start `deskbook embed` on the test's root; what still runs in the end is killed."""
    started: list[subprocess.Popen[str]] = []
    own = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}

    def run(*words: str, **environ: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "server", "embed", "--root", str(root), *words],
            env=own | {"PYTHONPATH": str(ROOT), "DESKBOOK_EMBEDDING": "local"} | environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def embed(start: Start) -> Embed:
    """Run it to its end, which must be a good one; gives what it printed."""

    def run(*words: str, **environ: str) -> str:
        process = start(*words, **environ)
        out, err = process.communicate(timeout=GUARD)
        assert process.returncode == 0, err
        return out

    return run


@pytest.fixture
def refused(start: Start) -> Callable[..., str]:
    """Run it to its end, which must be a refusal; gives what it said."""

    def run(*words: str, **environ: str) -> str:
        process = start(*words, **environ)
        out, err = process.communicate(timeout=GUARD)
        assert process.returncode > 0, (out, err)
        assert "Traceback" not in err
        assert "embedded" not in out
        return err

    return run


def open_book(root: Path, run: str | None = None, encoder: Encoder | None = None) -> closing[Book]:
    return closing(
        Book.open(root, "default", run, begins=START if run else None, durability="normal", encoder=encoder)
    )


def fill(root: Path, count: int, run: str | None = None, words: int = 4) -> None:
    """Write so many texts, every one different."""
    who = Caller("ann", "solo", "ses", "remember", now=START if run else None)
    with open_book(root, run) as book:
        for at in range(count):
            book.execute(who, Remember(text=" ".join(f"note{at} on {word}" for word in range(words))))


def waiting(root: Path, run: str | None = None) -> int:
    """How many texts have no vectors yet, told without loading the model."""
    with open_book(root, run, Encoder(MODEL, Bundled)) as book:
        return book.embedding_backlog()


def counted(out: str) -> int:
    found = re.search(r"^([\d,]+) texts? embedded", out, re.MULTILINE)
    assert found, out
    return int(found[1].replace(",", ""))


def every_text_has_its_vector(root: Path, count: int) -> bool:
    """Whether each text is found by its own vector, as the nearest there is."""
    encoder = Encoder(MODEL, Bundled)
    embedder = encoder.ready(GUARD)
    assert embedder is not None
    with open_book(root, encoder=encoder) as book, book.snapshot() as snapshot:
        texts = snapshot.texts(0, snapshot.head().sequence, limit=count + 1)
        assert len(texts) == count
        with book._view(snapshot, snapshot.head().sequence, 2**52, meaning=True) as view:
            for text in texts:
                vector = embedder.embed([text.text])[0]
                place, cosine = next(iter(view.alike(vector, Filter(), limit=1)))
                if place.sequence_from != text.sequence_from or cosine < 0.99:
                    return False
    return True


def test_it_embeds_all_there_is_and_then_nothing(root: Path, embed: Embed) -> None:
    fill(root, 70)
    assert waiting(root) == 70
    out = embed()
    assert out.strip() == f"70 texts {DONE}"
    assert waiting(root) == 0
    assert embed().strip() == f"0 texts {DONE}"
    fill(root, 1, words=5)
    assert embed().strip() == f"1 text {DONE}"
    assert embed("--again").strip() == f"71 texts {DONE}"
    assert every_text_has_its_vector(root, 71)


def test_each_version_is_embedded_and_so_is_a_run(root: Path, embed: Embed) -> None:
    with open_book(root) as book:
        who = Caller("ann", "solo", "ses", "tool")
        thesis = book.execute(who, OpenThesis(text="first wording")).id
        book.execute(who, UpdateThesis(thesis_id=thesis, text="second wording"))
    fill(root, 3, run="r1")
    assert counted(embed()) == 2
    assert counted(embed("--run", "r1")) == 3
    assert (waiting(root), waiting(root, "r1")) == (0, 0)


def stop_midway(process: subprocess.Popen[str], root: Path, count: int, signum: int) -> None:
    """Send a signal once some texts are embedded and others are not."""
    while waiting(root) == count:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert process.poll() is None, process.communicate()
    process.send_signal(signum)
    process.communicate(timeout=GUARD)


@pytest.mark.parametrize(
    "signum", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda signum: signum.name
)
def test_stopped_at_any_moment_it_goes_on_from_there(
    root: Path, start: Start, embed: Embed, signum: int
) -> None:
    fill(root, 128, words=30)
    stop_midway(start(), root, 128, signum)
    left = waiting(root)
    assert 0 < left < 128
    assert counted(embed()) == left
    assert counted(embed()) == 0
    assert every_text_has_its_vector(root, 128)


def test_two_at_once_share_the_work(root: Path, start: Start) -> None:
    fill(root, 150, words=10)
    both = [start(), start()]
    said = [process.communicate(timeout=GUARD) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(counted(out) for out, _ in said) == 150
    assert every_text_has_its_vector(root, 150)


def test_what_is_damaged_is_made_anew(root: Path, embed: Embed) -> None:
    fill(root, 40)
    embed()
    (vectors,) = (root / "default").rglob("*.vectors")
    for damage in (b"", b"not vectors at all", vectors.read_bytes()[:5_000]):
        vectors.write_bytes(damage)
        assert waiting(root) == 40
        assert counted(embed()) == 40
    assert every_text_has_its_vector(root, 40)


def test_a_model_without_an_endpoint_is_refused(root: Path, refused: Callable[..., str]) -> None:
    fill(root, 1)
    said = refused("--model", "other")
    assert "--model needs an endpoint" in said
    assert 'embedding.provider = "openai"' in said
    assert waiting(root) == 1


def test_without_a_provider_it_is_refused(root: Path, refused: Callable[..., str]) -> None:
    fill(root, 1)
    said = refused(DESKBOOK_EMBEDDING="none")
    assert "searches go by words" in said
    assert '"local"' in said
    assert not list(root.rglob("*.vectors"))


def test_without_a_ledger_it_is_refused_and_makes_none(root: Path, refused: Callable[..., str]) -> None:
    said = refused()
    assert "There is no ledger" in said
    assert not root.exists()
    fill(root, 1)
    assert "There is no ledger" in refused("--run", "never-begun")
    assert not list(root.rglob("never-begun"))


def test_a_folder_of_vectors_that_is_a_link_is_refused(
    root: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    fill(root, 1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "default" / "vectors").symlink_to(elsewhere)
    assert "link" in refused()
    assert list(elsewhere.iterdir()) == []
