"""Every connection carries the measured settings, and an unsafe SQLite is refused."""

import apsw
import pytest

from store.engines.sqlite.connection import check_sqlite_version, connect
from store.errors import StoreError

SYNCHRONOUS = {"full": 2, "normal": 1}


@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("access", ["write", "read", "immutable"])
def test_every_setting_is_in_force_on_every_connection(tmp_path, access, durability):
    path = tmp_path / "memory.sqlite"
    apsw.Connection(str(path)).execute("CREATE TABLE t (a)")
    connection = connect(path, access, durability)
    assert connection.pragma("synchronous") == SYNCHRONOUS[durability]
    assert connection.pragma("cache_size") == (-65_536 if access == "write" else -16_384)
    assert connection.pragma("mmap_size") == 0
    assert connection.pragma("trusted_schema") == 0
    assert connection.pragma("cell_size_check") == 1
    assert connection.pragma("recursive_triggers") == 1
    assert connection.pragma("journal_size_limit") == 64 * 2**20


def test_connecting_never_makes_a_file(tmp_path):
    with pytest.raises(apsw.CantOpenError):
        connect(tmp_path / "absent.sqlite", "write")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["3.7.0", "3.40.1", "3.51.2"])
def test_a_sqlite_with_the_wal_reset_fault_is_refused(version):
    with pytest.raises(StoreError, match=version):
        check_sqlite_version(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.54.1", "4.0.0"])
def test_a_sqlite_without_it_is_taken(version):
    check_sqlite_version(version)
