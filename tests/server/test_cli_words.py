"""What log, show, status and run print for a person: a gist for every event, words, and times in the desk's zone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import cli
from server.commands.gists import gist
from store import Book, Caller, Filter, SearchRequest
from store.clock import format_instant, parse_instant
from store.commands import OpenThesis, Remember
from store.events import event_types

TEXT = {"text": "because"}
NOON = parse_instant("2026-03-02T12:00:00Z", field="noon")
REVIEW = parse_instant("2226-06-01T14:30:00Z", field="review_by")
Run = Callable[..., tuple[int, str, str]]
GISTS: dict[str, tuple[dict[str, Any], str]] = {
    "genesis": ({"product": "deskbook 0.1.0"}, "deskbook 0.1.0"),
    "session.started": ({"transport": "stdio", "client_name": "host"}, "stdio, host"),
    "memory.recorded": (TEXT, "because"),
    "proposal.recorded": (TEXT, "because"),
    "risk_note.recorded": (TEXT, "because"),
    "decision.recorded": (TEXT, "because"),
    "lesson.recorded": (TEXT, "because"),
    "thesis.opened": (TEXT, "because"),
    "thesis.updated": (TEXT, "because"),
    "thesis.closed": ({"result": "win", "pnl": "4"}, "win, 4"),
    "memory.status_changed": ({"status": "withdrawn", "note": "wrong"}, "withdrawn, wrong"),
    "memory.flagged": ({"reason": "stale"}, "stale"),
    "memory.retrieved": (
        {
            "query": "margin",
            "filters": {
                "symbol": "AAPL",
                "kind": "thesis",
                "status": "open",
                "tags": ["a"],
                "since": NOON,
            },
            "total": 7,
            "selected": [{}, {}],
        },
        "2 of 7 handed over for: margin (symbol=AAPL kind=thesis status=open tags=a since=2026-03-02T12:00:00Z)",
    ),
    "memory.delivered": ({"surface": "state", "shown": [{}]}, "state, 1 memory shown"),
    "permission.denied": ({"tool": "open_thesis", "count": 3}, "refused 3 times"),
    "call.failed": ({"code": "conflict", "field": "x", "count": 2}, "conflict, x, 2 times"),
    "clock.anomaly": (
        {"previous": NOON, "observed": NOON - 1_000_000},
        "the clock read 2026-03-02T11:59:59Z after 2026-03-02T12:00:00Z",
    ),
    "clock.advanced": ({"previous": NOON}, "moved on from 2026-03-02T12:00:00Z"),
    "order_action.recorded": (
        {"operation": "submit", "side": "buy", "quantity": "20", "order_type": "limit", "limit_price": "222"}
        | TEXT,
        "submit buy 20 limit 222: because",
    ),
    "order.outcome": (
        {
            "certainty": "filled",
            "previous": "open",
            "standing": "observed",
            "filled_quantity": "20",
            "average_price": "221.71",
        },
        "filled (observed), 20 filled at 221.71, was open",
    ),
    "order.submitted": (
        {"action_id": "act_1", "broker_order_id": "b-81"},
        "opened by act_1, broker's id b-81",
    ),
    "positions.reported": (
        {"standing": "observed", "positions": [{"symbol": "AAPL", "quantity": "20"}]},
        "1 held (observed): AAPL 20",
    ),
    "thesis.outcome_observed": (
        {"day": "2026-03-02", "standing": "claim", "quantity": "20", "unrealised_return_pct": "1.2"},
        "2026-03-02 (claim): 20 held, unrealised 1.2 %",
    ),
    "warning": ({"code": "duplicate_order_risk", "message": "Two."}, "duplicate_order_risk: Two."),
    "lesson.judged": (
        {
            "verdict": "supports",
            "outcome_ids": ["ev_1"],
            "previous": "proposed",
            "status": "validated",
            "supports": 2,
            "contradicts": 0,
        },
        "1 outcome supports, 2 for, 0 against, proposed to validated",
    ),
    "import.begun": ({"system": "lumibot", "rows": 39}, "39 rows of lumibot"),
    "import.kept": (
        {"text": "Order action returned", "imported": {"source_at": 0, "agent": "trader"}},
        "Order action returned (imported, of 1970-01-01T00:00:00Z by trader)",
    ),
    "import.ended": (
        {"added": {"memory.recorded": 2, "import.kept": 1}, "defects": {"duplicate": {"total": 1}}},
        "added 2 memory.recorded, 1 import.kept; 1 defect in the source",
    ),
    "memory.repeated": ({"count": 3, "notices": []}, "said again, 3 times by now"),
    "review.approved": ({"note": "as agreed"}, "as agreed"),
    "review.rejected": ({"reason": "too vague"}, "too vague"),
    "review.edited": (TEXT | {"note": "shorter"}, "because"),
    "review.signed_off": ({"previous": "proposed", "note": "seen often"}, "seen often"),
    "review.renewed": (
        {"review_by": NOON, "expires_at": NOON + 1_000_000, "note": "still so"},
        "holds until 2026-03-02T12:00:00Z, expires at 2026-03-02T12:00:01Z, still so",
    ),
    "review.settled": (
        {
            "flag": 7,
            "resolution": "newer_wins",
            "supersedes": "mem_1",
            "contradicts": "mem_1",
            "policy": "newest",
        },
        "newer_wins, mem_1, newest",
    ),
    "memory.redacted": (
        {"reason": "a name", "covered": [{}, {}], "again": True},
        "took the content of 2 entries away again: a name",
    ),
    "publication.begun": (
        {"endpoint": "https://x", "body": "Bought.", "action_id": "act_1", "reconciled": "pub_1"},
        "act_1, tried before as pub_1, Bought.",
    ),
    "publication.ended": ({"outcome": "refused", "http_status": 422}, "refused, 422"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def run(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run a command on the test's root with a desk in New York; gives code, output and errors."""
    config = tmp_path / "desk.toml"
    config.write_text(f'[store]\nroot = "{root}"\n[clock]\ntimezone = "America/New_York"\n')

    def start(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["deskbook", *words, "--config", str(config)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return (end.value.code if isinstance(end.value.code, int) else 0), said.out, said.err

    return start


@pytest.fixture
def thesis(root: Path) -> str:
    """A ledger with a thesis on AAPL, a note on MSFT, and a search narrowed to each."""
    book = Book.open(root, "default")
    trader = Caller("trader", "trader", "ses-1", "open_thesis")
    opened = book.execute(trader, OpenThesis(text="held", symbol="AAPL", review_by=REVIEW))
    book.execute(trader, Remember(text="other", symbol="MSFT"))
    for symbol in ("AAPL", "MSFT"):
        book.search(trader, SearchRequest(query="held", conditions=Filter(symbol=symbol, kind="thesis")))
    book.close()
    return opened.id


def test_every_event_type_has_a_gist() -> None:
    assert GISTS.keys() == set(event_types())


@pytest.mark.parametrize("event_type", GISTS)
def test_the_gist_tells_what_a_person_looks_for(event_type: str) -> None:
    content, told = GISTS[event_type]
    assert gist(event_type, content, format_instant) == told


def test_a_long_query_does_not_push_the_filters_out_of_the_line() -> None:
    content = {"query": "margin " * 30, "filters": {"symbol": "AAPL"}, "total": 0, "selected": []}
    assert gist("memory.retrieved", content, format_instant).endswith("… (symbol=AAPL)")


def test_the_log_of_a_symbol_shows_the_searches_narrowed_to_it(run: Run, thesis: str) -> None:
    code, out, _ = run("log", "--symbol", "aapl")
    assert code == 0
    opened, searched = out.splitlines()
    assert thesis in opened
    assert searched.endswith("1 of 1 handed over for: held (kind=thesis symbol=AAPL)")
    assert run("log", "--symbol", "aapl", "--limit", "1")[1].splitlines() == [searched]
    assert run("log", "--symbol", "aapl", "--kind", "thesis")[1].splitlines() == [opened]
    assert run("log", "--symbol", "aapl", "--event", "memory.retrieved")[1].splitlines() == [searched]


def test_times_for_a_person_are_in_the_desks_zone_and_for_programs_in_utc(run: Run, thesis: str) -> None:
    time = run("log", "--kind", "thesis")[1].split()[1]
    assert time.endswith(("-04:00", "-05:00"))
    shown = run("show", thesis)[1]
    assert '"review_by": "2226-06-01T10:30:00-04:00"' in shown
    (record,) = [json.loads(text) for text in run("show", thesis, "--json")[1].splitlines()]
    assert record["effective_at"].endswith("Z")
    assert record["content"]["review_by"] == REVIEW


def test_a_date_is_the_start_of_its_day_in_the_desks_zone(run: Run, root: Path) -> None:
    book = Book.open(root, "default", "r", begins=NOON - 12 * 3_600_000_000)
    for hour in ("2026-03-02T04:59:59Z", "2026-03-02T05:00:00Z"):
        caller = Caller("t", "trader", "ses-1", "remember", now=parse_instant(hour, field="now"))
        book.execute(caller, Remember(text=f"at {hour}"))
    book.close()
    words = ("log", "--run", "r", "--event", "memory.recorded")
    assert [line.rpartition("at ")[2] for line in run(*words, "--since", "2026-03-02")[1].splitlines()] == [
        "2026-03-02T05:00:00Z"
    ]
    assert [line.rpartition("at ")[2] for line in run(*words, "--until", "2026-03-02")[1].splitlines()] == [
        "2026-03-02T04:59:59Z",
        "2026-03-02T05:00:00Z",
    ]
    assert run(*words, "--as-of", "2026-03-03")[0] == 2
    assert run(*words, "--since", "2026-02-30")[0] == 2


def test_a_log_in_which_nothing_matches_says_so_on_stderr(run: Run, thesis: str) -> None:
    assert run("log", "--agent", "nobody") == (0, "", "no entries match\n")


@pytest.mark.parametrize("command", ["show", "explain"])
def test_an_unknown_id_is_answered_with_a_step_in_the_shell(run: Run, thesis: str, command: str) -> None:
    code, out, err = run(command, "nope")
    assert (code, out) == (1, "")
    assert "nope" in err
    assert "`deskbook log --kind thesis`" in err
    assert "memory" not in err


def test_what_is_not_there_is_said_in_words(run: Run, thesis: str) -> None:
    told = dict(line.split(maxsplit=1) for line in run("status")[1].splitlines())
    assert (told["run"], told["problem"], told["writable"], told["memories"]) == ("none", "none", "yes", "2")


def test_one_of_a_thing_is_named_as_one(run: Run, root: Path) -> None:
    book = Book.open(root, "default", "r", begins=NOON - 12 * 3_600_000_000)
    book.execute(Caller("t", "trader", "ses-1", "remember", now=NOON), Remember(text="alone"))
    book.close()
    assert "1 memory," in run("run", "list")[1]
    assert "1 memory\n" in run("rebuild", "--run", "r")[1]
    code, out, err = run("run", "show", "nope")
    assert (code, out) == (1, "")
    assert "`deskbook run list`" in err
