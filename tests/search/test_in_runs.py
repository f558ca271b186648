"""Searches by meaning in a run wait for vectors, repeat, see live memories of their time, and leak nothing."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import ids
from store.commands import CloseThesis, OpenThesis, Remember, UpdateThesis
from store.errors import EmbeddingFailed
from store.leaks import find_leaks

if TYPE_CHECKING:
    from conftest import HandClock, Seat, Senses

    from store.embedding.loading import Encoder

OpenSeat = Callable[..., "Seat"]
Embed = Callable[["Seat"], int]
START = 1_772_461_800_000_000
HOUR = 3_600_000_000
QUERIES = ("sales dropped", "dealer declined", "revenue climbed on turnover", "rose")
TEXTS = (
    "turnover slid after the report", "the broker declined the order", "revenue rose twice",
    "sales gained and then fell", "something else altogether", "a dealer quoted wide",
)  # fmt: skip


@pytest.fixture
def same_ids(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From each call on, new ids come from one fixed series."""

    def begin() -> None:
        monkeypatch.setattr(secrets, "randbits", random.Random(1).getrandbits)
        ids._places.begin()

    return begin


def replay(seat: Seat) -> list[Any]:
    """The calls of one backtest; gives what its searches said."""
    said: list[Any] = []
    thesis = seat.do(OpenThesis(text="sales will be gained"), now=START).id
    for hour in range(1, 13):
        now = START + hour * HOUR
        seat.do(Remember(text=f"{TEXTS[hour % len(TEXTS)]} {hour}"), now=now)
        if hour == 6:
            seat.do(UpdateThesis(thesis_id=thesis, text="sales declined instead"), now=now)
        if hour == 10:
            seat.do(CloseThesis(thesis_id=thesis, result="loss"), now=now)
        for query in QUERIES:
            body = seat.find(query, who=seat.caller(now=now), detailed=True, limit=5)
            said.append([(hit["id"], hit["version"], hit["provenance"]) for hit in body["hits"]])
            said.append(body.get("semantic"))
            record = seat.last_content("memory.retrieved")
            said.append({name: record[name] for name in ("mode", "model", "cut", "watermark", "candidates")})
    return said


def test_a_search_in_a_run_waits_for_its_vectors_so_nothing_has_to_be_embedded_before(
    open_seat: OpenSeat, encoder: Encoder
) -> None:
    run = open_seat(run="r", encoder=encoder)
    note = run.do(Remember(text="turnover slid"), now=START).id
    found = run.find("sales dropped", who=run.caller(now=START))
    assert [hit["id"] for hit in found["hits"]] == [note]
    assert "semantic" not in found
    said = run.last_content("memory.retrieved")
    assert (said["mode"], said["watermark"]) == ("hybrid", said["cut"])


def test_two_replays_give_the_same_ids_order_and_scores_however_far_their_vectors_were(
    open_seat: OpenSeat, encoder: Encoder, embed: Embed, tmp_path: Path, same_ids: Callable[[], None]
) -> None:
    said = []
    for name in ("one", "two"):
        same_ids()
        said.append(replay(open_seat(run="r", root=tmp_path / name, encoder=encoder)))
    assert said[0] == said[1]
    assert any(part for part in said[0] if isinstance(part, list))


def test_a_reading_of_the_whole_run_again_gives_what_it_gave_then(
    open_seat: OpenSeat, encoder: Encoder
) -> None:
    run = open_seat(run="r", encoder=encoder)
    replay(run)
    assert len(run.entries("memory.retrieved")) == 12 * len(QUERIES)
    first: dict[int, Any] = {}
    for forgotten in (False, True):
        if forgotten:
            run.book.forget_vectors()
        for hour in (3, 6, 9):
            wanted = {
                "who": run.caller(now=START + 12 * HOUR),
                "as_of": START + hour * HOUR,
                "detailed": True,
            }
            hits = run.find("sales dropped", **wanted)["hits"]
            assert first.setdefault(hour, hits) == hits
            assert hits


def test_the_bundled_model_repeats_too(
    open_seat: OpenSeat, bundled: Encoder, tmp_path: Path, same_ids: Callable[[], None]
) -> None:
    said = []
    for name in ("one", "two"):
        same_ids()
        said.append(replay(open_seat(run="r", root=tmp_path / name, encoder=bundled)))
    assert said[0] == said[1]


class Inherited:
    """A live ledger with a past, a run that inherits it, and what live wrote after the pin."""

    def __init__(self, open_seat: OpenSeat, clock: HandClock, encoder: Encoder) -> None:
        clock.us = START - 9 * HOUR
        self.live = open_seat(encoder=encoder)
        self.old = self.live.do(Remember(text="turnover slid long ago")).id
        clock.us = START + 3 * HOUR
        self.later = self.live.do(Remember(text="sales fell later")).id
        self.run = open_seat(run="r", inherit="live", encoder=encoder)
        clock.us = START + 4 * HOUR
        self.past_pin = self.live.do(Remember(text="revenue declined past the pin")).id
        self.own = self.run.do(Remember(text="revenue dropped here"), now=START).id

    def find(self, hours: int, query: str = "sales dropped", **wanted: Any) -> dict[str, Any]:
        return self.run.find(query, who=self.run.caller(now=START + hours * HOUR), **wanted)


@pytest.fixture
def inherited(open_seat: OpenSeat, clock: HandClock, encoder: Encoder) -> Inherited:
    return Inherited(open_seat, clock, encoder)


@pytest.mark.parametrize("ahead", [False, True], ids=["no vectors yet", "vectors of all"])
def test_a_run_finds_live_memories_of_its_time_by_meaning_and_says_that_they_are_live(
    inherited: Inherited, embed: Embed, ahead: bool
) -> None:
    if ahead:
        embed(inherited.live)
    hits = inherited.find(1)["hits"]
    assert {(hit["id"], hit.get("source")) for hit in hits} == {
        (inherited.own, None), (inherited.old, "live"),
    }  # fmt: skip
    said = inherited.run.last_content("memory.retrieved")
    assert (said["mode"], said["inherited_watermark"]) == ("hybrid", said["inherited_cut"])
    assert {one.get("source") for one in said["candidates"]} == {None, "live"}
    hits = inherited.find(5)["hits"]
    assert {hit["id"] for hit in hits} == {inherited.own, inherited.old, inherited.later}


def test_pages_over_both_layers_are_the_whole(inherited: Inherited) -> None:
    for at in range(5):
        inherited.run.do(Remember(text=f"sales dropped {at}"), now=START + HOUR)
    whole = [hit["id"] for hit in inherited.find(5, limit=50)["hits"]]
    pages, cursor = [], None
    while True:
        page = inherited.find(5, limit=2, cursor=cursor)
        pages += [hit["id"] for hit in page["hits"]]
        assert inherited.run.last_content("memory.retrieved")["mode"] == "hybrid"
        cursor = page["cursor"]
        if cursor is None:
            break
    assert pages == whole
    assert len(whole) == 8


@pytest.mark.parametrize("inherit", ["live", "none"])
def test_a_run_with_searches_by_meaning_leaks_nothing(
    open_seat: OpenSeat, clock: HandClock, encoder: Encoder, tmp_path: Path, inherit: str
) -> None:
    clock.us = START - 9 * HOUR
    live = open_seat(encoder=encoder)
    live.do(Remember(text="turnover slid long ago"))
    run = open_seat(run="r", inherit=inherit, encoder=encoder)
    replay(run)
    who = run.caller(now=START + 20 * HOUR)
    for query in (*QUERIES, "quite another matter", "PLTR guidance", ""):
        for wanted in ({}, {"as_of": START + 2 * HOUR}, {"order": "losses_first", "detailed": True}):
            body = run.find(query, who=who, limit=2, **wanted)
            while body["cursor"]:
                body = run.find(query, who=who, limit=2, cursor=body["cursor"], **wanted)
    report = find_leaks(tmp_path, "default", "r")
    assert report.leaks == ()
    assert report.searches > 48
    assert report.versions > 100


@pytest.mark.parametrize("how", ["fails", "cannot be had"])
def test_a_run_whose_model_is_not_there_says_so_and_its_notices_are_no_leak(
    open_seat: OpenSeat, encoder: Encoder, senses: Senses, tmp_path: Path, how: str
) -> None:
    def missing() -> Any:
        raise EmbeddingFailed("It is gone.")

    if how == "fails":
        senses.fault = EmbeddingFailed("It is out of reach.")
    else:
        encoder = type(encoder)("gone", missing)
    run = open_seat(run="r", encoder=encoder)
    note = run.do(Remember(text="turnover slid"), now=START).id
    for query, hits in (("turnover", [note]), ("sales", [])):
        found = run.find(query, who=run.caller(now=START))
        assert [hit["id"] for hit in found["hits"]] == hits
        assert found["semantic"].startswith("by words only: ")
    said = run.last_content("memory.retrieved")
    assert said["mode"] == "terms"
    assert "model" not in said
    assert find_leaks(tmp_path, "default", "r").leaks == ()
