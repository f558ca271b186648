"""`leaks` finds nothing in runs as they are, and every kind of leak that is planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import Book, Filter, SearchRequest
from store.commands import CloseThesis, OpenThesis, Remember, UpdateThesis
from store.engines.sqlite.snapshot import SqliteSnapshot
from store.errors import DeskbookError, ForeignFile, NotFound
from store.event_parts import Selected
from store.events import Delivered, Retrieved
from store.inheritance import Inheritance
from store.leaks import Leak, find_leaks
from store.ledger import Draft
from store.view import LIVE, Layer

if TYPE_CHECKING:
    from conftest import HandClock, Hands, Seat

HOUR = 3_600_000_000
START = 1_772_461_800_000_000
OpenSeat = Callable[..., "Seat"]
ABSENT = "mem_0000000000000"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


class Trial:
    """A run with two versions of a thesis and a note, one hour apart, over a live ledger with a later part."""

    def __init__(self, open_seat: OpenSeat, clock: HandClock, root: Path, inherit: str = "live") -> None:
        self.root = root
        clock.us = START - 9 * HOUR
        self.live = open_seat()
        self.old = self.live.do(Remember(text="unicorn of live")).id
        self.live.clock.us = START + 3 * HOUR
        self.live_later = self.live.do(Remember(text="unicorn of live, later")).id
        self.run = open_seat(run="r", inherit=inherit)
        self.live.clock.us = START - HOUR
        self.past_pin = self.live.do(Remember(text="unicorn past the pin")).id
        self.thesis = self.run.do(OpenThesis(text="unicorn first", symbol="AAPL"), now=self.at(0)).id
        self.note = self.run.do(Remember(text=f"unicorn about {self.thesis}"), now=self.at(0)).id

    def at(self, hours: int) -> int:
        return START + hours * HOUR

    def go_on(self) -> None:
        """What the run learns an hour after its first entries."""
        self.run.do(UpdateThesis(thesis_id=self.thesis, text="unicorn second"), now=self.at(1))
        self.later = self.run.do(Remember(text="unicorn one hour later"), now=self.at(1)).id
        self.run.do(CloseThesis(thesis_id=self.thesis, result="win"), now=self.at(2))

    def leaks(self) -> list[Leak]:
        return list(find_leaks(self.root, "default", "r").leaks)

    def found(self, hits: list[dict[str, Any]], cut: int | None = None, **more: Any) -> Retrieved:
        """The record of a search that handed these hits over."""
        chosen = tuple(
            Selected(id=hit["id"], version=hit.pop("as_version", 1), source=hit.get("source")) for hit in hits
        )
        fields: dict[str, Any] = {
            "query": "unicorn", "mode": "terms", "filters": {}, "total": len(hits), "candidates": (),
            "cut": self.run.book.head().sequence if cut is None else cut, "selected": chosen,
            "rendered": json.dumps({"hits": hits}),
        }  # fmt: skip
        return Retrieved(**{**fields, **more})

    def plant(self, hands: Hands, event: Retrieved | Delivered, hours: int = 0) -> int:
        subject = "ret_planted" if isinstance(event, Retrieved) else "state"
        kind = "retrieval" if isinstance(event, Retrieved) else event.surface
        return hands.append(self.run.book, self.run.caller(now=self.at(hours)), Draft(event, kind, subject))


@pytest.fixture
def trial(open_seat: OpenSeat, clock: HandClock, root: Path) -> Trial:
    return Trial(open_seat, clock, root)


@pytest.mark.parametrize("inherit", ["live", "none"])
def test_a_run_as_it_is_leaks_nothing(
    open_seat: OpenSeat, clock: HandClock, root: Path, inherit: str
) -> None:
    trial = Trial(open_seat, clock, root, inherit)
    run = trial.run
    for hours in (0, 1, 2, 5):
        if hours == 1:
            trial.go_on()
        who = run.caller(now=trial.at(max(hours, 2 if hours else 0)), call=f"turn-{hours}")
        for query in ("unicorn", "", f"unicorn {trial.thesis}", "!!"):
            for options in ({}, {"as_of": trial.at(0)}, {"as_of": trial.at(1), "detailed": True}):
                body = run.find(query, who=who, limit=1, **options)
                while body["cursor"]:
                    body = run.find(query, who=who, limit=1, cursor=body["cursor"], **options)
        run.find("unicorn", who=who, reply_chars=400, limit=50)
        for as_of in (None, trial.at(0), trial.at(1)):
            run.state(who, as_of=as_of)
            run.get(trial.thesis, who, as_of=as_of)
        if inherit == "live":
            run.get(trial.old, who)
    report = find_leaks(root, "default", "r")
    assert report.leaks == ()
    assert report.searches > 50
    assert report.showings > 10
    assert report.versions > 100


def hit(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **more}


def planted(trial: Trial, hands: Hands, event: Retrieved | Delivered, hours: int = 0) -> list[str]:
    """What leaks says of the one planted entry, having said nothing before."""
    assert trial.leaks() == []
    sequence = trial.plant(hands, event, hours)
    told = trial.leaks()
    assert {leak.sequence for leak in told} <= {sequence}
    return [leak.what for leak in told]


def test_the_frame_of_a_planted_search_is_sound(trial: Trial, hands: Hands) -> None:
    assert planted(trial, hands, trial.found([hit(trial.note, f"unicorn about {trial.thesis}")])) == []


def test_a_version_that_was_written_later_is_a_leak(trial: Trial, hands: Hands) -> None:
    event = trial.found([hit(trial.thesis, "unicorn second", as_version=2)])
    sequence = trial.plant(hands, event)
    trial.go_on()
    (told,) = trial.leaks()
    assert told.sequence == sequence
    assert "version 2 is of 2026-03-02T15:30:00Z, after the clock 2026-03-02T14:30:00Z" in told.what


def test_a_version_of_the_same_instant_written_after_the_showing_is_a_leak(
    trial: Trial, hands: Hands
) -> None:
    sequence = trial.plant(hands, trial.found([hit(trial.thesis, "unicorn second", as_version=2)]))
    trial.run.do(UpdateThesis(thesis_id=trial.thesis, text="unicorn second"), now=trial.at(0))
    (told,) = trial.leaks()
    assert (told.sequence, "did not stand yet" in told.what) == (sequence, True)


def test_a_version_after_the_as_of_of_a_search_is_a_leak(trial: Trial, hands: Hands) -> None:
    trial.go_on()
    cut = trial.run.entries("thesis.updated")[0].sequence - 1
    event = trial.found([hit(trial.thesis, "unicorn second", as_version=2)], as_of=trial.at(0), cut=cut)
    (told,) = planted(trial, hands, event, 2)
    assert "after the clock 2026-03-02T14:30:00Z" in told


def test_a_candidate_from_the_future_is_a_leak_though_it_was_not_handed_over(
    trial: Trial, hands: Hands
) -> None:
    trial.go_on()
    cut = trial.run.entries("thesis.updated")[0].sequence - 1
    event = trial.found(
        [], as_of=trial.at(0), cut=cut, candidates=({"id": trial.later, "version": 1, "lexical_rank": 1},)
    )
    (told,) = planted(trial, hands, event, 2)
    assert told.startswith(f"{trial.later} version 1 is of")


@pytest.mark.parametrize("version", [0, -1, 2, 99])
def test_a_version_that_no_entry_wrote_is_a_leak(trial: Trial, hands: Hands, version: int) -> None:
    event = trial.found([hit(trial.note, "anything", as_version=version)])
    assert planted(trial, hands, event) == [
        f"{trial.note} version {version} was shown, but no entry of the ledger wrote it"
    ]


@pytest.mark.parametrize("text", ["unicorn second", "unicorn", "unicorn firs", "unicorn second…", "", "…x"])
def test_a_text_that_is_not_that_of_its_version_is_a_leak(trial: Trial, hands: Hands, text: str) -> None:
    told = planted(trial, hands, trial.found([hit(trial.thesis, text)]))
    assert told == [f"the text shown of {trial.thesis} is not that of version 1"]


def test_a_status_or_a_closing_of_a_later_version_is_a_leak(trial: Trial, hands: Hands) -> None:
    closed = {"closed_at": "2026-03-02T16:30:00Z"}
    event = trial.found([hit(trial.thesis, "unicorn first", status="closed", details=closed)])
    told = planted(trial, hands, event)
    assert told == [
        f"{trial.thesis} was shown as closed, where version 1 is not",
        f"{trial.thesis} was shown with closed_at 2026-03-02T16:30:00Z, after the clock",
    ]


@pytest.mark.parametrize("shown_at", ["2026-03-02T15:30:00Z", "2026-03-02T09:31:00-05:00", "tomorrow"])
def test_a_time_after_the_clock_in_the_text_is_a_leak(trial: Trial, hands: Hands, shown_at: str) -> None:
    event = trial.found([hit(trial.thesis, "unicorn first", effective_at=shown_at)])
    assert planted(trial, hands, event) == [
        f"{trial.thesis} was shown with effective_at {shown_at}, after the clock"
    ]


@pytest.mark.parametrize("hours", [0, 1])
def test_an_id_that_is_mentioned_before_it_was_written_is_a_leak(
    trial: Trial, hands: Hands, hours: int
) -> None:
    rendered: dict[str, Any] = {"hits": [hit(trial.thesis, "unicorn first")]}
    younger = trial.run.do(Remember(text="younger"), now=trial.at(1)) if hours else None
    name = younger.id if younger else ABSENT
    rendered["message"] = f"see {name}"
    event = trial.found(list(rendered["hits"]), rendered=json.dumps(rendered), cut=4)
    if hours:
        event = event.model_copy(update={"as_of": trial.at(0)})
    told = planted(trial, hands, event, hours)
    assert told == ([f"{name} is mentioned in the text handed over before it was written"] if hours else [])


def test_a_live_memory_of_after_the_clock_that_is_mentioned_is_a_leak(trial: Trial, hands: Hands) -> None:
    rendered = json.dumps({"hits": [], "message": f"see {trial.live_later}"})
    (told,) = planted(trial, hands, trial.found([], rendered=rendered))
    assert told.startswith(f"{trial.live_later} is mentioned")


def test_a_live_version_past_the_pin_is_a_leak(trial: Trial, hands: Hands) -> None:
    event = trial.found([hit(trial.past_pin, "unicorn past the pin", source="live")], inherited_cut=3)
    told = planted(trial, hands, event, 9)
    assert any("did not stand yet" in what for what in told)


def test_a_live_version_of_after_the_clock_is_a_leak(trial: Trial, hands: Hands) -> None:
    event = trial.found([hit(trial.live_later, "unicorn of live, later", source="live")], inherited_cut=3)
    told = planted(trial, hands, event)
    assert any(what.startswith(f"{trial.live_later} version 1 is of") for what in told)


def test_a_live_memory_shown_in_a_run_that_inherits_nothing_is_a_leak(
    open_seat: OpenSeat, clock: HandClock, root: Path, hands: Hands
) -> None:
    trial = Trial(open_seat, clock, root, "none")
    event = trial.found([hit(trial.old, "unicorn of live", source="live")], inherited_cut=2)
    told = planted(trial, hands, event)
    assert "the live ledger was read up to its entry 2, where the clock allowed 0" in told
    assert len(told) == 2


def test_a_showing_that_read_past_the_clock_is_a_leak_whatever_it_names(trial: Trial, hands: Hands) -> None:
    """Counts, flags and recent lines of a state are no versions: how far it read is what tells."""
    trial.go_on()
    cut = trial.run.book.head().sequence
    event = Delivered(surface="state", as_of=trial.at(0), cut=cut, inherited_cut=2, shown=())
    assert planted(trial, hands, event, 2) == [
        f"the run was read up to its entry {cut}, where the clock allowed 4"
    ]


@pytest.mark.parametrize(("surface", "inherited"), [("state", 4), ("memory", 99)])
def test_a_state_that_read_live_past_the_pin_or_the_clock_is_a_leak(
    trial: Trial, hands: Hands, surface: Any, inherited: int
) -> None:
    event = Delivered(surface=surface, cut=2, inherited_cut=inherited, shown=())
    (told,) = planted(trial, hands, event)
    assert told.startswith(f"the live ledger was read up to its entry {inherited}")


def test_a_delivery_of_a_future_version_is_a_leak(trial: Trial, hands: Hands) -> None:
    event = Delivered(surface="memory", cut=4, inherited_cut=3, shown=(Selected(id=trial.thesis, version=3),))
    sequence = trial.plant(hands, event)
    trial.go_on()
    assert sequence in {leak.sequence for leak in trial.leaks()}


def test_text_and_record_that_name_different_memories_are_a_leak(trial: Trial, hands: Hands) -> None:
    rendered = json.dumps({"hits": [hit(trial.note, "x")]})
    event = trial.found([hit(trial.thesis, "unicorn first")], rendered=rendered)
    told = planted(trial, hands, event)
    assert len([what for what in told if "not in both" in what]) == 2


@pytest.mark.parametrize("rendered", ["", "not json", "[]", '{"hits": 3}', '{"hits": [{"text": "x"}]}'])
def test_a_text_that_is_no_reply_is_a_leak(trial: Trial, hands: Hands, rendered: str) -> None:
    assert planted(trial, hands, trial.found([], rendered=rendered)) == [
        "the text handed over is no search reply"
    ]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cut": 1, "shown": [{"id": "x"}]}'])
def test_a_record_that_cannot_be_read_is_a_leak_and_no_traceback(
    trial: Trial, hands: Hands, content: str
) -> None:
    sequence = trial.plant(hands, trial.found([]))
    hands.change("r", "UPDATE memory_events SET content = ? WHERE sequence = ?", content, sequence)
    assert [(leak.sequence, leak.what) for leak in trial.leaks()] == [
        (sequence, "what was shown cannot be read from the record")
    ]


def test_a_leak_is_found_by_entries_alone_whatever_the_projections_say(trial: Trial, hands: Hands) -> None:
    trial.run.find("unicorn", who=trial.run.caller(now=trial.at(0)))
    assert trial.leaks() == []
    for table in ("memory_versions", "memory_retrievals", "memory_deliveries", "memory_clock"):
        hands.change("r", f"DELETE FROM {table}")
    assert trial.leaks() == []
    hands.change(
        "r", "UPDATE memory_events SET effective_at = ? WHERE subject_id = ?", trial.at(1), trial.thesis
    )
    assert [leak.what[:4] for leak in trial.leaks()] != []


def no_cut(snapshot: SqliteSnapshot, instant: int) -> int:
    found = snapshot.head()
    assert found is not None
    return found.sequence


def test_a_store_without_its_cut_is_caught_by_leaks(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut broken in the product itself, not in a planted record."""
    trial.go_on()
    monkeypatch.setattr(SqliteSnapshot, "cut_at", no_cut)
    who = trial.run.caller(now=trial.at(2))
    trial.run.find("unicorn", who=who, as_of=trial.at(0))
    trial.run.state(who, as_of=trial.at(0))
    assert {leak.sequence for leak in trial.leaks()} == {
        entry.sequence
        for kind in ("memory.retrieved", "memory.delivered")
        for entry in trial.run.entries(kind)
    }


def test_a_store_without_its_pin_is_caught_by_leaks(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def layers(inheritance: Inheritance, at: int, *, meaning: bool = False) -> Any:
        assert inheritance._engine is not None
        with inheritance._engine.read() as snapshot:
            yield (Layer(snapshot, no_cut(snapshot, at), LIVE),)

    monkeypatch.setattr(Inheritance, "layers", layers)
    shown = trial.run.find("past the pin", who=trial.run.caller(now=trial.at(9)))
    assert trial.past_pin in {each["id"] for each in shown["hits"]}
    assert any("did not stand yet" in leak.what for leak in trial.leaks())


def test_leaks_of_no_run_of_a_lost_live_ledger_and_of_a_damaged_file_are_told(
    trial: Trial, root: Path
) -> None:
    with pytest.raises(NotFound, match="no run of that name"):
        find_leaks(root, "default", "another")
    request = SearchRequest(query="unicorn of live", conditions=Filter())
    trial.run.book.search(trial.run.caller(now=trial.at(0)), request)
    trial.run.book.close()
    trial.live.book.close()
    for path in trial.live.path.parent.glob("memory.sqlite*"):
        path.unlink()
    with pytest.raises(ForeignFile, match="nothing can be proven"):
        trial.leaks()
    trial.run.path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(DeskbookError):
        find_leaks(root, "default", "r")
    Book.open(root, "default").close()
