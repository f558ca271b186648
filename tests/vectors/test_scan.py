"""What is nearest to a query, against a reference that compares every row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.lifecycle import ALL_STATUSES, KINDS
from store.rows import Filter
from store.symbols import Line
from store.vectors import scan as scanning
from store.vectors.base import Wanted
from store.vectors.file import VectorFile
from store.vectors.layout import FOREVER, KIND_NUMBERS, STATUS_NUMBERS, digest, tag_bits
from store.vectors.scan import EXACT_ROWS, RESCORED, Scan

ROWS: Final = 600
DIMENSIONS: Final = 48
KIND: Final = sorted(KINDS)
STATUS: Final = sorted(ALL_STATUSES)
SYMBOLS: Final = ("AAPL", "BRK.B", "FB", "META", None)
AGENTS: Final = ("ann", "bob")
TAGS: Final = ("earnings", "macro", "swiss")
ANY: Final = Filter()


class Reference:
    """Random rows as plain values, and the versions among them that meet what is wanted."""

    def __init__(self) -> None:
        chosen = np.random.default_rng(7)
        self.vectors = chosen.standard_normal((ROWS, DIMENSIONS))
        several = np.sort(chosen.integers(1, ROWS, ROWS))  # some versions have several rows
        self.sequence = several.tolist()
        first = np.searchsorted(several, several)

        def of_version(values: Any) -> list[Any]:
            return [values[at] for at in first.tolist()]

        span = chosen.integers(1, ROWS // 2, ROWS)
        standing = chosen.random(ROWS) < 0.6
        self.ended = of_version(np.where(standing, FOREVER, several + span).tolist())
        self.effective = of_version(chosen.integers(0, 100, ROWS).tolist())
        lasting = chosen.random(ROWS) < 0.7
        self.expires = of_version(np.where(lasting, FOREVER, chosen.integers(0, 100, ROWS)).tolist())
        self.pending = of_version((chosen.random(ROWS) < 0.1).astype(int).tolist())
        self.kind = of_version([KIND[at] for at in chosen.integers(0, 3, ROWS)])
        self.status = of_version([STATUS[at] for at in chosen.integers(0, 3, ROWS)])
        self.symbol = of_version([SYMBOLS[at] for at in chosen.integers(0, 5, ROWS)])
        self.agent = of_version([AGENTS[at] for at in chosen.integers(0, 2, ROWS)])
        tags = chosen.random((ROWS, 3)) < 0.5
        self.tags = of_version(
            [tuple(tag for tag, has in zip(TAGS, row, strict=True) if has) for row in tags]
        )

    def columns(self) -> dict[str, list[int]]:
        return {
            **{
                name: getattr(self, name) for name in ("sequence", "ended", "effective", "expires", "pending")
            },
            "kind": [KIND_NUMBERS[kind] for kind in self.kind],
            "status": [STATUS_NUMBERS[status] for status in self.status],
            "symbol": [0 if symbol is None else digest(symbol) for symbol in self.symbol],
            "agent": [digest(agent) for agent in self.agent],
            "tags": [tag_bits(tags) for tags in self.tags],
        }

    def meets(self, row: int, wanted: Wanted) -> bool:
        asked, effective = wanted.conditions, self.effective[row]
        return (
            self.sequence[row] <= min(wanted.cut, wanted.watermark)
            and self.ended[row] > wanted.cut
            and self.expires[row] > wanted.at
            and not self.pending[row]
            and asked.kind in (None, self.kind[row])
            and asked.status in (None, self.status[row])
            and asked.agent in (None, self.agent[row])
            and set(asked.tags) <= set(self.tags[row])
            and (asked.since is None or effective >= asked.since)
            and (asked.until is None or effective <= asked.until)
            and (asked.symbol is None or any(self.on(row, line) for line in asked.lines))
        )

    def on(self, row: int, line: Line) -> bool:
        return self.symbol[row] == line.symbol and line.holds(self.effective[row])

    def nearest(self, query: Any, wanted: Wanted) -> dict[int, float]:
        """The cosine of the nearest piece of each version."""
        whole = exact_cosines(self.vectors, query)
        found: dict[int, float] = {}
        for row, cosine in enumerate(whole):
            if self.meets(row, wanted):
                sequence = self.sequence[row]
                found[sequence] = max(cosine, found.get(sequence, -1.0))
        return found


def exact_cosines(vectors: Any, query: Any) -> list[float]:
    """The cosines of vectors as they came, by numbers that are not rounded."""
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return [float(cosine) for cosine in (vectors @ query) / norms]


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference()


@pytest.fixture(scope="module")
def scan(reference: Reference, written: Any, tmp_path_factory: pytest.TempPathFactory) -> Scan:
    path = tmp_path_factory.mktemp("scan") / "fake.vectors"
    return Scan(written(path, reference.vectors, batches=[7, 100, 250], **reference.columns()))


INSTANTS: Final = st.none() | st.integers(-1, 101)
LINES: Final = st.builds(Line, st.sampled_from(SYMBOLS[:4]), INSTANTS, INSTANTS)
FILTERS: Final = st.builds(
    Filter,
    kind=st.none() | st.sampled_from(KIND[:4]),
    status=st.none() | st.sampled_from(STATUS[:4]),
    agent=st.none() | st.sampled_from((*AGENTS, "nobody")),
    tags=st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    since=INSTANTS,
    until=INSTANTS,
)
ON_LINES: Final = st.builds(Filter, symbol=st.just("META"), lines=st.lists(LINES, max_size=3).map(tuple))
POINTS: Final = st.integers(0, ROWS + 1)
WANTED: Final = st.builds(Wanted, FILTERS | ON_LINES | st.just(ANY), POINTS, st.integers(-1, 101), POINTS)


@given(wanted=WANTED, seed=st.integers(0, 999), limit=st.integers(1, 50))
def test_the_nearest_are_those_of_all_rows_that_meet_the_conditions(
    wanted: Wanted, seed: int, limit: int, scan: Scan, reference: Reference
) -> None:
    query = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    expected = reference.nearest(query, wanted)
    found = scan.nearest(query, wanted, ROWS)
    assert {near.sequence for near in found} == set(expected)
    for near in found:
        assert near.cosine == pytest.approx(expected[near.sequence], abs=0.02)
    assert found == sorted(found, key=lambda near: (-near.cosine, -near.sequence))
    assert scan.nearest(query, wanted, limit) == found[:limit]


@given(wanted=WANTED, asked=st.lists(st.integers(-2, ROWS + 5), max_size=30))
def test_the_similarity_of_a_version_is_that_by_which_it_is_found(
    wanted: Wanted, asked: list[int], scan: Scan, reference: Reference
) -> None:
    """Whatever else it meets: who asks knows the version already."""
    query = reference.vectors[5].astype(np.float32)
    told = scan.similarities(query, wanted, asked)
    within = min(wanted.cut, wanted.watermark)
    assert set(told) == {each for each in asked if each in set(reference.sequence) and each <= within}
    found = {near.sequence: near.cosine for near in scan.nearest(query, wanted, ROWS)}
    assert {each: told[each] for each in found if each in told} == {
        each: found[each] for each in found if each in told
    }


def test_a_cosine_is_that_of_the_codes_to_six_digits(scan: Scan, reference: Reference, wanting: Any) -> None:
    query = reference.vectors[5].astype(np.float32)
    most = float(np.abs(query).max())
    whole = [round(float(number) * (32_767 / most)) for number in query]
    best: dict[int, float] = {}
    codes = scan.file.codes[:ROWS].tolist()
    for row in range(ROWS):
        dot = sum(a * b for a, b in zip(codes[row], whole, strict=True))
        length = math.sqrt(sum(a * a for a in codes[row])) * math.sqrt(sum(b * b for b in whole))
        sequence = reference.sequence[row]
        best[sequence] = max(dot / length, best.get(sequence, -1.0))
    told = scan.similarities(query, wanting(), list(best))
    assert told == pytest.approx(best, abs=2e-6)
    assert told[reference.sequence[5]] == pytest.approx(1.0, abs=1e-4)
    assert all(cosine == round(cosine, 6) for cosine in told.values())


def test_two_tags_that_share_a_bit_are_not_told_apart_here(
    tmp_path: Path, written: Any, wanting: Any
) -> None:
    """The search looks the versions up and leaves out what has another tag."""
    names = (f"tag-{number}" for number in range(10_000))
    first = next(names)
    second = next(name for name in names if tag_bits((name,)) == tag_bits((first,)))
    file = written(tmp_path / "fake.vectors", np.eye(2), tags=[tag_bits((first,)), tag_bits((second,))])
    found = Scan(file).nearest(np.array([1.0, 0.5]), wanting(Filter(tags=(first,))), 5)
    assert [near.sequence for near in found] == [1, 2]


def test_nothing_is_found_in_an_empty_file(tmp_path: Path, written: Any, wanting: Any) -> None:
    scan = Scan(written(tmp_path / "fake.vectors", np.empty((0, 4))))
    assert scan.nearest(np.ones(4), wanting(), 5) == []
    assert scan.similarities(np.ones(4), wanting(), [1, 2]) == {}


@pytest.mark.parametrize("rows", [5_000, EXACT_ROWS + 1, EXACT_ROWS, 5_600])
def test_a_limit_of_five_thousand_is_kept(rows: int, tmp_path: Path, written: Any, wanting: Any) -> None:
    """P221: however many are asked for, as many are given as there are."""
    vectors = np.random.default_rng(4).standard_normal((rows, 16))
    scan = Scan(written(tmp_path / "fake.vectors", vectors))
    query = vectors[17].astype(np.float32)
    found = scan.nearest(query, wanting(), 5_000)
    assert len(found) == len({near.sequence for near in found}) == min(rows, 5_000)
    assert found[0].sequence == 18
    best = np.argsort(-np.array(exact_cosines(vectors, query)))[:50] + 1
    assert len({near.sequence for near in found[:60]} & set(best.tolist())) >= 48


@pytest.mark.parametrize("rows", [EXACT_ROWS, EXACT_ROWS + 1, 3 * EXACT_ROWS])
@pytest.mark.parametrize("slab", [1_000, 65_536])
def test_among_equals_the_newer_come_first_however_many_there_are(
    rows: int,
    slab: int,
    tmp_path: Path,
    written: Any,
    wanting: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scanning, "_SLAB", slab)
    vectors = np.tile(np.array([3.0, -1.0, 2.0, 5.0]), (rows, 1))
    scan = Scan(written(tmp_path / "fake.vectors", vectors))
    found = scan.nearest(np.array([1.0, 1.0, 1.0, 1.0]), wanting(), 30)
    assert [near.sequence for near in found] == list(range(rows, rows - 30, -1))
    cut = rows - 100
    found = scan.nearest(np.array([1.0, 1.0, 1.0, 1.0]), wanting(cut=cut), 30)
    assert [near.sequence for near in found] == list(range(cut, cut - 30, -1))


class Clusters:
    """Many rows around few centres, as the texts of a desk are, and a file of them."""

    def __init__(self, path: Path, written: Any, rows: int = 20_000, centres: int = 150) -> None:
        self.chosen = np.random.default_rng(11)
        self.centres = self.chosen.standard_normal((centres, 384))
        member = self.chosen.integers(0, centres, rows)
        self.vectors = self.centres[member] + 0.7 * self.chosen.standard_normal((rows, 384))
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.kind = self.chosen.integers(0, 2, rows)
        self.pending = (self.chosen.random(rows) < 0.2).astype(int)
        self.file: VectorFile = written(
            path, self.vectors, kind=self.kind.tolist(), pending=self.pending.tolist()
        )

    def queries(self, count: int) -> Sequence[Any]:
        """Near a centre each, as a question is."""
        around = self.centres[self.chosen.integers(0, len(self.centres), count)]
        return list((around + 0.7 * self.chosen.standard_normal(around.shape)).astype(np.float32))


@pytest.fixture(scope="module")
def clusters(written: Any, tmp_path_factory: pytest.TempPathFactory) -> Clusters:
    return Clusters(tmp_path_factory.mktemp("clusters") / "fake.vectors", written)


@pytest.mark.parametrize("kind", [None, 0])
def test_among_many_rows_nineteen_of_twenty_of_the_nearest_are_found(
    kind: int | None, clusters: Clusters, wanting: Any
) -> None:
    """By the signs of the vectors; what does not meet the conditions is never among them."""
    conditions = ANY if kind is None else Filter(kind=KIND[kind])
    meets = (clusters.pending == 0) & (True if kind is None else clusters.kind == kind)
    assert meets.sum() > EXACT_ROWS
    scan, hits, asked = Scan(clusters.file), 0, 0
    for query in clusters.queries(60):
        cosines = np.where(meets, np.array(exact_cosines(clusters.vectors, query)), -2.0)
        best = set((np.argsort(-cosines)[:10] + 1).tolist())
        found = [near.sequence for near in scan.nearest(query, wanting(conditions), RESCORED)]
        assert len(found) == RESCORED
        assert meets[np.array(found) - 1].all()
        hits, asked = hits + len(best & set(found[:10])), asked + 10
    assert hits / asked >= 0.95


def test_what_is_kept_does_not_depend_on_the_slabs(
    clusters: Clusters, wanting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = Scan(clusters.file)
    queries = clusters.queries(10)
    whole = [scan.nearest(query, wanting(), 100) for query in queries]
    for slab in (999, 4_096, 19_999):
        monkeypatch.setattr(scanning, "_SLAB", slab)
        assert [scan.nearest(query, wanting(), 100) for query in queries] == whole


def test_what_came_after_the_watermark_changes_no_answer(
    clusters: Clusters, tmp_path: Path, written: Any, wanting: Any
) -> None:
    """A search in a run is found again by its cut, however many rows have been written since."""
    short = Scan(written(tmp_path / "short.vectors", clusters.vectors[:9_000]))
    long = Scan(written(tmp_path / "long.vectors", clusters.vectors))
    for query in clusters.queries(10):
        assert short.nearest(query, wanting(), 100) == long.nearest(query, wanting(cut=9_000), 100)
        assert short.nearest(query, wanting(), 100) == long.nearest(query, wanting(watermark=9_000), 100)
