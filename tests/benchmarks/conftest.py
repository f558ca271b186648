"""Ledgers of 10,000 and 100,000 memories, and how figures are printed side by side."""

from __future__ import annotations

import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import apsw
import pytest

from store import Book, Caller
from store.commands import Decide, NoteRisk, OpenThesis, Remember

SIZES = (10_000, 100_000)
SYMBOLS = [f"SYM{number}" for number in range(60)]
CALLER = Caller(agent="bench", profile="solo", session_id="bench", tool="remember")
CHUNK = 500

HERE = Path(__file__).parent
REPOSITORY = Path(__file__).resolve().parents[2]
MEASURED = """
import sys, time
began = time.perf_counter()
exec(sys.argv.pop(1))
seconds = time.perf_counter() - began
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(seconds, int(peak) / 1024)
"""

TOLD: list[str] = []
"""Every table of this run, for the page."""

Print = Callable[[str, Sequence[str], Iterable[Sequence[str]]], None]
Measured = Callable[[str, Path], tuple[float, float]]


class Writing:
    """Notes as a desk writes them: about 30 words, of which few are common and most are rare."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [f"w{number}" for number in range(20_000)]
        self._weights = [1 / (rank + 1) for rank in range(len(self._words))]

    def text(self, words: int = 30) -> str:
        return " ".join(self._random.choices(self._words, self._weights, k=words))

    def query(self) -> str:
        """Three words: one common, two from the middle."""
        chosen = [self._random.randrange(0, 30), *(self._random.randrange(100, 5_000) for _ in range(2))]
        return " ".join(self._words[number] for number in chosen)

    def symbol(self) -> str:
        return self._random.choice(SYMBOLS)

    def command(self) -> Remember | NoteRisk | Decide | OpenThesis:
        kind = self._random.random()
        text, symbol = self.text(), self.symbol()
        if kind < 0.6:
            return Remember(text=text, symbol=symbol, tags=("bench",))
        if kind < 0.8:
            return Decide(text=text, symbol=symbol, action="buy", evidence={"close": "101.25"})
        if kind < 0.99:
            return NoteRisk(text=text, symbol=symbol)
        return OpenThesis(text=text, symbol=symbol, direction="long")


@pytest.fixture
def writing() -> Writing:
    return Writing(7)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A root for each size, each with one ledger, closed in order."""
    growing = tmp_path_factory.mktemp("growing")
    roots: dict[int, Path] = {}
    writing, stored = Writing(1), 0
    for size in SIZES:
        fill(growing, writing, stored, size)
        stored = size
        roots[size] = tmp_path_factory.mktemp(f"of-{size}")
        shutil.copytree(growing, roots[size], dirs_exist_ok=True)
    return roots


def fill(root: Path, writing: Writing, stored: int, size: int) -> None:
    """Write many memories in each transaction, as no caller can: it only saves time."""
    book = Book.open(root, "default", durability="normal")
    engine, ledger = book._engine, book._ledger
    from store.handlers import plan
    from store.view import Layer, View

    def job(transaction):  # type: ignore[no-untyped-def]
        for _ in range(min(CHUNK, size - stored)):
            head = transaction.head()
            at = ledger.instant(transaction, head, CALLER)
            view = View((Layer(transaction, head.sequence),), at)
            ledger.append(transaction, CALLER, plan(writing.command(), transaction, CALLER, view).drafts)

    while stored < size:
        engine.write(job, timeout=60.0, grace=60.0)
        stored += CHUNK
    book.close()


@pytest.fixture
def copy_of(filled: dict[int, Path], tmp_path: Path) -> Callable[[int], Path]:
    """A root of the test's own with so many memories."""

    def copy(size: int) -> Path:
        return Path(shutil.copytree(filled[size], tmp_path / f"copy-of-{size}", dirs_exist_ok=True))

    return copy


@pytest.fixture
def larger(tmp_path: Path) -> Callable[[int], Path]:
    """A root with more memories than the others, which takes its time to fill; BENCH_KEEP names where it may stay."""

    def make(size: int) -> Path:
        kept = os.environ.get("BENCH_KEEP")
        root = tmp_path / "larger" if kept is None else Path(kept) / str(size)
        if not (root / "filled").exists():
            fill(root, Writing(1), 0, size)
            (root / "filled").touch()
        return root

    return make


@pytest.fixture
def measured() -> Measured:
    """Seconds and MiB at most of a process that does nothing but the code, with a path as its argument."""

    def run(code: str, path: Path) -> tuple[float, float]:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, code, str(path)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )
        seconds, most = done.stdout.split()
        return float(seconds), float(most)

    return run


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Print:
    """Print a small table past the capture of output."""

    def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        lines = [tuple(head), *map(tuple, rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        told = [title]
        for line in lines:
            cells = [
                cell.ljust(width) if at == 0 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            told.append(("  " + "  ".join(cells)).rstrip())
        TOLD.append("\n".join(told))
        with capsys.disabled():
            print("\n" + TOLD[-1])

    return table


def pytest_sessionfinish() -> None:
    """Write the page of results where BENCH_PAGE names it: machine, versions and every table of the run."""
    page = os.environ.get("BENCH_PAGE")
    if page and TOLD:
        tables = "\n\n".join(f"```text\n{told.strip()}\n```" for told in TOLD)
        Path(page).write_text(
            f"{HERE.joinpath('page.md').read_text()}\n{_machine()}\n\n{tables}\n", encoding="utf-8"
        )


def _machine() -> str:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    named = ("apsw", "numpy", "onnxruntime", "tokenizers", "pyarrow", "pydantic", "mcp")
    versions = ", ".join(f"{name} {version(name)}" for name in named)
    return (
        f"Machine: {cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}.\n"
        f"Versions: Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {versions},"
        " Lumibot 4.6.30.\n"
        "Seeds: 1 for what is stored, 7 for what is asked; the made-up vectors by each word's CRC-32."
    )


def quantile(seconds: Sequence[float], share: float) -> float:
    """Milliseconds below which so large a share of the times lies."""
    ordered = sorted(seconds)
    return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@pytest.fixture
def percentile() -> Callable[[Sequence[float], float], float]:
    return quantile


@pytest.fixture
def median() -> Callable[[Sequence[float]], float]:
    return statistics.median
