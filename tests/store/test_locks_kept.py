"""A second opening in one process must not take the first one's locks: POSIX drops them at any close."""

from pathlib import Path

from store import Book
from store.audit import verify

LOCKS = Path("/proc/locks")


def held(path: Path) -> set[tuple[str, ...]]:
    """The locks on a file, without the number that /proc gives each line."""
    inode = str(path.stat().st_ino)
    lines = (tuple(line.split()[1:]) for line in LOCKS.read_text().splitlines())
    return {line for line in lines if line[4].rsplit(":", 1)[-1] == inode}


def test_opening_and_verifying_a_ledger_again_leaves_the_locks_of_the_open_one(tmp_path):
    book = Book.open(tmp_path, "desk")
    path = tmp_path / "desk" / "memory.sqlite"
    before = held(path)
    assert before
    other = Book.open(tmp_path, "desk")
    verify(path, "desk", None)
    other.close()
    assert held(path) == before
    book.close()
