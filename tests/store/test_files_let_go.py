"""An engine that is closed keeps no file open, whether it wrote or only read."""

from pathlib import Path

import pytest

from store import Book
from store.engines.sqlite import SqliteEngine
from store.ledger import projected

OPEN = Path("/proc/self/fd")


def open_below(folder: Path) -> list[str]:
    found = []
    for handle in OPEN.iterdir():
        try:
            found.append(str(handle.readlink()))
        except OSError:
            continue
    return sorted(path for path in found if path.startswith(str(folder)))


@pytest.mark.parametrize("writes", [True, False])
def test_closing_lets_go_of_every_file(tmp_path: Path, writes: bool) -> None:
    Book.open(tmp_path, "desk").close()
    engine = SqliteEngine(tmp_path / "desk" / "memory.sqlite", projected, create=False, writes=writes)
    with engine.read() as snapshot:
        assert snapshot.head() is not None
    assert open_below(tmp_path)
    engine.close()
    assert open_below(tmp_path) == []
