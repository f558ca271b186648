"""kill -9 at the worst moments: what was acknowledged is there, and the ledger is sound."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from store import Book, Caller
from store.commands import Remember
from store.engines.sqlite.schema import CURRENT

if TYPE_CHECKING:
    from conftest import Look, StartHand, StartServer

pytestmark = pytest.mark.faults

ROUNDS = 30
OLD_ENTRIES = 2_500


def test_a_server_killed_thirty_times_under_writes_loses_nothing_acknowledged(
    start_server: StartServer, look: Look, root: Path
) -> None:
    """P014."""
    chosen = random.Random(14)
    acknowledged: dict[str, str] = {}
    for round_number in range(ROUNDS):
        server = start_server().open()
        texts = [f"round {round_number} decision {number}" for number in range(60)]
        frames = [
            server.frame(
                "tools/call",
                name="remember_decision",
                arguments={"text": text, "symbol": "SPY", "action": "buy"},
            )
            for text in texts
        ]
        asked = {frame["id"]: text for frame, text in zip(frames, texts, strict=True)}
        server.send(*frames)
        server.wait_for_answers(1 + chosen.randint(1, 40))  # the handshake's answer and so many more
        server.kill()
        answered = server.stored()
        assert len(answered) > 0
        acknowledged |= {body["event_id"]: asked[key] for key, body in answered.items()}
        assert acknowledged.keys() <= look.event_ids()
    assert len(acknowledged) > ROUNDS
    look.assert_sound()
    stored = {
        str(event_id): str(text)
        for event_id, text in look.rows(
            "SELECT e.event_id, v.text FROM memory_events e JOIN memory_versions v ON v.sequence_from = e.sequence"
        )
    }
    assert {event_id: stored[event_id] for event_id in acknowledged} == acknowledged
    look.assert_rebuild_changes_nothing(root)


def test_thirty_kills_between_commit_and_acknowledgement_lose_nothing(
    start_hand: StartHand, look: Look, root: Path
) -> None:
    """P014: each round's last commit is in the log, and none of its callers was told."""
    acknowledged: set[str] = set()
    for round_number in range(ROUNDS):
        hand = start_hand("write-until-killed", root, f"agent{round_number}", 3 + round_number % 7)
        told: set[str] = set()
        while (event_id := hand.says()) is not None:
            told.add(event_id)
        assert hand.wait() == -signal.SIGKILL
        assert told
        acknowledged |= told
        mine = look.rows(
            "SELECT count(*) FROM memory_events WHERE agent = ? AND kind = 'memory'", f"agent{round_number}"
        )
        assert mine[0][0] > len(told)  # the commit without an answer is whole, too
    assert acknowledged <= look.event_ids()
    look.assert_sound()
    look.assert_rebuild_changes_nothing(root)


@pytest.fixture
def old_ledger(root: Path, ledger: Path) -> Path:
    """A ledger whose projections are those of schema 1."""
    fill(root, OLD_ENTRIES)
    connection = apsw.Connection(str(ledger), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute(
        "DROP TABLE memory_flags; DROP TABLE memory_clock; DELETE FROM memory_versions;"
        " DROP INDEX memory_events_call; DROP INDEX memory_events_rare; PRAGMA user_version = 1"
    )
    connection.close()
    return ledger


def fill(root: Path, count: int) -> None:
    book = Book.open(root, "default", durability="normal")
    caller = Caller(agent="filler", profile="solo", session_id="filling", tool="remember")
    for number in range(count):
        book.execute(caller, Remember(text=f"note {number} of the old days", tags=("old",)))
    book.close()


@pytest.mark.parametrize(
    "moment",
    [
        "PRAGMA user_version",
        "BEGIN IMMEDIATE",
        "entry 1",
        "entry 999",
        f"entry {OLD_ENTRIES + 2}",
        "COMMIT",
        "after COMMIT",
    ],
)
def test_a_kill_within_an_upgrade_leaves_the_old_ledger_or_the_new_one(
    start_hand: StartHand, old_ledger: Path, look: Look, root: Path, moment: str
) -> None:
    entries = look.rows("SELECT * FROM memory_events ORDER BY sequence")
    hand = start_hand("upgrade-and-die", old_ledger, moment)
    assert hand.says() is None
    assert hand.wait() == -signal.SIGKILL
    schema = look.rows("PRAGMA user_version")
    assert schema == ([(CURRENT,)] if moment == "after COMMIT" else [(1,)])
    assert look.rows("SELECT * FROM memory_events ORDER BY sequence") == entries

    book = Book.open(root, "default", create=False)
    assert book.status().memories == OLD_ENTRIES
    book.close()
    assert look.rows("PRAGMA user_version") == [(CURRENT,)]
    assert look.rows("SELECT * FROM memory_events ORDER BY sequence") == entries
    look.assert_sound()
    look.assert_rebuild_changes_nothing(root)
    assert {path.name for path in old_ledger.parent.iterdir()} <= {
        "memory.sqlite",
        "memory.sqlite-wal",
        "memory.sqlite-shm",
        "memory.sqlite.lock",
        "memory.sqlite.turn",
        "memory.sqlite.schema1.bak",
    }


@pytest.mark.parametrize("moment", ["page", "commit"])
def test_a_kill_within_a_rebuild_leaves_the_projections_as_they_were(
    start_hand: StartHand, look: Look, root: Path, moment: str
) -> None:
    fill(root, 1_500)
    before = look.projections()
    hand = start_hand("rebuild-and-die", root, moment)
    assert hand.says() is None
    assert hand.wait() == -signal.SIGKILL
    assert look.projections() == before
    look.assert_sound()
    look.assert_rebuild_changes_nothing(root)
