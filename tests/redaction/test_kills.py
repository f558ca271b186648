"""kill -9 at any point of a redaction leaves the state before, or one that the same redaction finishes."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from store.audit import verify
from store.commands import Remember
from store.export.checking import check_exports
from store.export.exporter import bring_up_to_date

if TYPE_CHECKING:
    from conftest import StartHand

PARTS = ("Quorvex", "Söhne", "quorvextag")
BEFORE_THE_COMMIT = ("before the register", "after the register", "before the blanks", "among the rows")
AFTER_IT = (
    *("before the commit", "before the pages", "before the log", "before the exports", "before the vectors"),
    "before the copies",
)


@pytest.mark.parametrize("place", [*BEFORE_THE_COMMIT, *AFTER_IT])
def test_a_redaction_that_was_killed_is_finished_by_the_same_one(
    seat: Any,
    secret: str,
    redact: Any,
    traced: Any,
    register: Any,
    tmp_path: Path,
    start_hand: StartHand,
    place: str,
) -> None:
    bring_up_to_date(tmp_path, seat.path, seat.book.snapshot)
    (tmp_path / "default" / "vectors").mkdir()
    (tmp_path / "default" / "vectors" / "m.vectors").write_bytes(b"no vectors, and Quorvex")
    seat.book.close()
    hand = start_hand("redact", tmp_path, register._folder, secret, place)
    assert hand.wait() == -signal.SIGKILL
    with closing(apsw.Connection(str(seat.path))) as connection:
        (said,) = connection.execute(
            "SELECT count(*) FROM memory_events WHERE event_type = 'memory.redacted'"
        ).fetchone()
        (blank,) = connection.execute("SELECT count(*) FROM memory_events WHERE content = ''").fetchone()
    assert (said > 0) == (blank > 0) == (place in AFTER_IT)
    assert verify(seat.path, "default", None).findings == ()
    assert redact(secret).remains == []
    assert traced(tmp_path, *PARTS) == []
    assert verify(seat.path, "default", None).findings == ()
    assert check_exports(seat.path) == []
    lines = register.lines(seat.book.genesis.store_id)
    assert len({line.sequence for line in lines}) == len(lines)
    assert "Quorvex" not in json.dumps([line.kept for line in lines])


def test_a_redaction_that_was_killed_between_a_run_and_its_live_ledger_is_finished(
    open_seat: Any, redact: Any, traced: Any, register: Any, tmp_path: Path, start_hand: StartHand
) -> None:
    live = open_seat()
    made = live.do(Remember(text="Quorvex holds its base", symbol="AAPL"))
    later = live.clock.us + 86_400_000_000
    run = open_seat(run="back", inherit="live", begins=later)
    run.find("Quorvex", who=run.caller(now=later))
    live.book.close()
    run.book.close()
    hand = start_hand("redact", tmp_path, register._folder, made.id, "between the ledgers")
    assert hand.wait() == -signal.SIGKILL
    assert traced(live.path.parent, "Quorvex") != []
    assert redact(made.id).remains == []
    assert traced(tmp_path, "Quorvex") == []
    for path, name in ((live.path, None), (run.path, "back")):
        assert verify(path, "default", name).findings == ()
