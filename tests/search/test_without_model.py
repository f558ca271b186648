"""Where the model is slow, fails or is missing, searches go on by words, and every reply says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server import cli
from store.commands import Remember
from store.embedding import bundled as bundled_model
from store.embedding.loading import Encoder
from store.errors import EmbeddingFailed

if TYPE_CHECKING:
    from conftest import OpenDesk, Seat, Senses

OpenSeat = Callable[..., "Seat"]
Embed = Callable[["Seat"], int]
GUARD = 60.0
WARMING = "by words only: the model is being loaded; search again in a second"
RESTING = "by words only: the model failed and is tried again in some seconds"
UNAVAILABLE = "by words only: there is no model here; deskbook doctor says why"
BEHIND = "newer texts by words only: they are being embedded"
MISSING = "there-is-no-such-package"


@pytest.fixture
def deskbook(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Run a command in this process, on the test's root; gives its exit code and what it printed."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["deskbook", *words, "--root", str(tmp_path / "root")])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return run


@contextmanager
def slow(senses: Senses) -> Iterator[tuple[Encoder, threading.Event]]:
    """An encoder whose model is loaded once the event is set; it always is in the end."""
    loaded = threading.Event()

    def make() -> Any:
        assert loaded.wait(GUARD)
        return senses

    try:
        yield Encoder(senses.model, make), loaded
    finally:
        loaded.set()


def test_a_search_while_the_model_is_loaded_goes_by_words_and_says_so(
    open_seat: OpenSeat, senses: Senses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P217"""
    monkeypatch.setattr("store.search.meaning.LIVE_WAIT_SECONDS", 0)
    with slow(senses) as (encoder, loaded):
        seat = open_seat(encoder=encoder)
        note = seat.do(Remember(text="turnover slid")).id
        found = seat.find("turnover")
        assert ([hit["id"] for hit in found["hits"]], found["semantic"]) == ([note], WARMING)
        found = seat.find("sales dropped")
        assert (found["hits"], found["semantic"]) == ([], WARMING)
        said = seat.last_content("memory.retrieved")
        assert said["mode"] == "terms"
        assert not {"model", "watermark"} & set(said)
        assert json.loads(said["rendered"])["semantic"] == WARMING
        assert seat.book.embed_next() is None
        loaded.set()
        assert encoder.ready(GUARD) is senses
        while (step := seat.book.embed_next()) is not None and step.more:
            pass
        found = seat.find("sales dropped")
        assert [hit["id"] for hit in found["hits"]] == [note]
        assert "semantic" not in found


def test_writing_waits_for_no_model(open_seat: OpenSeat, senses: Senses) -> None:
    """P217"""
    with slow(senses) as (encoder, _):
        seat = open_seat(encoder=encoder)
        assert seat.do(Remember(text="turnover slid")).status == "active"
        assert seat.get(seat.ids()[0])["memory"]["text"] == "turnover slid"
        assert encoder.state == "idle"


@pytest.mark.parametrize("fault", [EmbeddingFailed("Parts are missing."), OSError("a disk"), MemoryError()])
def test_a_model_that_cannot_be_had_is_told_in_every_reply_and_asked_for_once(
    open_seat: OpenSeat, fault: Exception
) -> None:
    """P217, P234"""
    tried = []

    def missing() -> Any:
        tried.append(1)
        raise fault

    encoder = Encoder("gone", missing)
    seat = open_seat(encoder=encoder)
    note = seat.do(Remember(text="turnover slid")).id
    for query in ("turnover", "turnover slid", "slid"):
        found = seat.find(query)
        assert ([hit["id"] for hit in found["hits"]], found["semantic"]) == ([note], UNAVAILABLE)
    assert seat.find("zinc")["message"].startswith("Nothing was found by words alone.")
    assert seat.book.embed_next() is None
    assert tried == [1]
    assert encoder.state == "unavailable"
    assert encoder.problem


def test_listing_needs_no_model_and_says_nothing_of_it(open_seat: OpenSeat) -> None:
    def missing() -> Any:
        raise EmbeddingFailed("Parts are missing.")

    seat = open_seat(encoder=Encoder("gone", missing))
    seat.do(Remember(text="turnover slid !!"))
    for query in ("", "  ", "!!"):
        found = seat.find(query)
        assert found["total"] == 1
        assert "semantic" not in found


def test_a_model_that_fails_rests_and_is_tried_again(
    meant: Seat, senses: Senses, embed: Embed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P234"""
    note = meant.do(Remember(text="turnover slid")).id
    embed(meant)
    senses.fault = EmbeddingFailed("It is out of reach.")
    found = meant.find("turnover")
    assert ([hit["id"] for hit in found["hits"]], found["semantic"]) == ([note], RESTING)
    asked = len(senses.asked)
    assert meant.find("slid")["semantic"] == RESTING
    assert len(senses.asked) == asked
    senses.fault = None
    monkeypatch.setattr("store.embedding.loading.time.monotonic", lambda: float("inf"))
    found = meant.find("sales dropped")
    assert [hit["id"] for hit in found["hits"]] == [note]
    assert "semantic" not in found


def test_a_model_that_fails_while_it_embeds_leaves_the_rest_to_be_found_by_words(
    meant: Seat, senses: Senses, embed: Embed
) -> None:
    old = meant.do(Remember(text="turnover slid")).id
    embed(meant)
    meant.find("sales dropped")
    new = meant.do(Remember(text="revenue gained")).id
    senses.fault = EmbeddingFailed("It is out of reach.")
    assert meant.book.embed_next() is None
    assert meant.book.embedding_backlog() == 1
    assert meant.ids("revenue") == [new]
    assert meant.ids("turnover") == [old]


def test_a_second_page_goes_on_by_meaning_or_says_that_it_cannot(
    meant: Seat, senses: Senses, embed: Embed
) -> None:
    ids = [meant.do(Remember(text=f"revenue {at}")).id for at in range(4)]
    embed(meant)
    first = meant.find("revenue", limit=2)
    assert "semantic" not in first
    meant.book._vectors._encoder._queries.clear()
    senses.fault = EmbeddingFailed("It is out of reach.")
    second = meant.find("revenue", limit=2, cursor=first["cursor"])
    assert second["semantic"] == RESTING
    assert {hit["id"] for hit in second["hits"]} <= set(ids)


def test_a_second_page_by_words_says_so_as_the_first_did(open_seat: OpenSeat) -> None:
    """P234"""

    def missing() -> Any:
        raise EmbeddingFailed("Parts are missing.")

    seat = open_seat(encoder=Encoder("gone", missing))
    ids = [seat.do(Remember(text=f"revenue {at}")).id for at in range(4)]
    first = seat.find("revenue", limit=2)
    second = seat.find("revenue", limit=2, cursor=first["cursor"])
    assert sorted(hit["id"] for hit in first["hits"] + second["hits"]) == sorted(ids)
    assert first["semantic"] == second["semantic"] == UNAVAILABLE


@pytest.mark.anyio
async def test_a_desk_whose_model_is_missing_serves_by_words_and_status_and_doctor_say_why(
    open_desk: OpenDesk, deskbook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P217, P234"""
    monkeypatch.setenv("DESKBOOK_EMBEDDING", "local")
    monkeypatch.setattr(bundled_model, "_PACKAGE", MISSING)
    desk = open_desk()
    async with desk.client() as client:
        note = await desk.call(client, "remember", text="turnover slid")
        for query, hits in (("turnover", [note["id"]]), ("sales", [])):
            found = await desk.call(client, "search_memory", query=query)
            assert [hit["id"] for hit in found["hits"]] == hits
            assert found["semantic"] == UNAVAILABLE
        assert (await desk.call(client, "get_memory", memory_id=note["id"]))["memory"]["id"] == note["id"]
    desk.server.drain()
    lacking = f"the package {MISSING} is not installed"
    code, out = deskbook("status")
    assert code == 0
    assert f"unavailable, searches go by words: {lacking}" in " ".join(out.split())
    code, out = deskbook("status", "--json")
    assert json.loads(out)["embedding"] == f"unavailable, searches go by words: {lacking}"
    code, out = deskbook("doctor", "--json")
    (told,) = [finding for finding in json.loads(out) if finding["check"] == "embedding"]
    assert (told["mark"], told["found"]) == ("warn", f"{lacking}: searches go by words")
    assert told["next"]
    code, out = deskbook("embed")
    assert code != 0
    assert "not installed" in out


@pytest.mark.anyio
async def test_a_desk_without_a_model_by_its_settings_says_nothing_in_its_replies(
    open_desk: OpenDesk, deskbook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBOOK_EMBEDDING", "none")
    desk = open_desk()
    async with desk.client() as client:
        note = await desk.call(client, "remember", text="turnover slid")
        found = await desk.call(client, "search_memory", query="turnover")
        assert [hit["id"] for hit in found["hits"]] == [note["id"]]
        assert "semantic" not in found
    desk.server.drain()
    assert json.loads(deskbook("status", "--json")[1])["embedding"] == "off: searches go by words"
    assert not list((desk.root / "default").rglob("*.vectors"))


def test_a_model_whose_vectors_became_longer_is_not_compared_with_the_old_ones(
    open_seat: OpenSeat, encoder_of: Callable[..., Encoder], embed: Embed
) -> None:
    """P219"""
    old = open_seat(encoder=encoder_of(model="same name", dimensions=64))
    note = old.do(Remember(text="turnover slid")).id
    embed(old)
    new = open_seat(encoder=encoder_of(model="same name", dimensions=32))
    found = new.find("turnover")
    assert [hit["id"] for hit in found["hits"]] == [note]
    assert "semantic" in found
    assert new.find("sales dropped")["hits"] == []
    late = new.do(Remember(text="revenue gained")).id
    assert new.ids("revenue") == [late]
    embed(new)
    assert new.ids("sales dropped")[0] == note
    assert "semantic" not in new.find("turnover")


def test_vectors_of_two_models_are_kept_apart(
    open_seat: OpenSeat, encoder_of: Callable[..., Encoder], embed: Embed
) -> None:
    """P219"""
    seats = [
        open_seat(encoder=encoder_of(model=name, dimensions=size)) for name, size in (("a", 64), ("b", 32))
    ]
    note = seats[0].do(Remember(text="turnover slid")).id
    assert [embed(seat) for seat in seats] == [1, 1]
    assert [seat.ids("sales dropped") for seat in seats] == [[note], [note]]
    assert [seat.last_content("memory.retrieved")["model"] for seat in seats] == ["b", "b"]
    assert [embed(seat) for seat in seats] == [0, 0]
