"""The cache of the tree: logarithmic, safe between processes, and believed in nothing."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.proofs import signing
from store.proofs.cache import BLOCK, HEADER_BYTES, ROW_BYTES, TreeCache, _blocks, _rows, cache_path
from store.proofs.checkpoint import open_checkpoint
from store.proofs.tree import root_by_path, root_of

READS_PER_LEVEL = 3


class Chain:
    """A ledger of leaves alone, which counts what is read of it."""

    def __init__(self, size: int, seed: int = 0, store_id: str = "store_0000000000000") -> None:
        self.store_id = store_id
        self.rows: list[tuple[bytes, bytes]] = []
        self.read = 0
        self.grow(size, seed)

    def grow(self, size: int, seed: int = 0) -> None:
        chain = self.rows[-1][1] if self.rows else bytes(32)
        for number in range(len(self.rows), len(self.rows) + size):
            leaf = hashlib.sha256(f"{seed}:{number}".encode()).digest()
            chain = hashlib.sha256(b"\x01" + chain + leaf).digest()
            self.rows.append((leaf, chain))

    def links(self, start: int, stop: int) -> Iterator[tuple[bytes, bytes]]:
        for row in self.rows[start:stop]:
            self.read += 1
            yield row

    @property
    def leaves(self) -> list[bytes]:
        return [leaf for leaf, _ in self.rows]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tree.cache"


def whole(chain: Chain, file: Path | None, *sizes: int) -> None:
    """Every root and a few paths come out as the leaves say."""
    for size in sizes or (len(chain.rows),):
        with TreeCache(file, chain) as cache:
            root = root_of(chain.leaves[:size])
            assert cache.root(size) == root
            for index in {0, size // 3, size - 1} if size else ():
                path = cache.path(index, size)
                assert root_by_path(chain.leaves[index], index, size, path) == root


@given(st.lists(st.integers(0, 70), max_size=6))
def test_any_growth_in_any_steps_gives_the_leaves_own_roots(steps: list[int]) -> None:
    chain = Chain(0)
    cache = TreeCache(None, chain)
    for step in steps:
        chain.grow(step)
        assert cache.root(len(chain.rows)) == root_of(chain.leaves)
        assert cache.root(len(chain.rows) // 2) == root_of(chain.leaves[: len(chain.rows) // 2])
    cache.close()


@given(st.integers(0, 5_000), st.integers(0, ROW_BYTES - 1), st.integers(0, 14))
def test_a_file_cut_anywhere_holds_the_blocks_before_the_cut(blocks: int, odd: int, short: int) -> None:
    rows = max(0, _rows(blocks) - short)
    found = _blocks(HEADER_BYTES + rows * ROW_BYTES + odd)
    assert _rows(found) <= rows < _rows(found + 1)


def test_the_file_is_its_owners_alone_and_grows_at_its_end(file: Path) -> None:
    chain = Chain(100)
    whole(chain, file)
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    assert len(before) == HEADER_BYTES + _rows(100 // BLOCK) * ROW_BYTES
    chain.grow(1_000)
    whole(chain, file)
    assert file.read_bytes().startswith(before)


@pytest.mark.parametrize("power", [8, 11, 14])
def test_a_path_costs_reads_in_the_logarithm_of_the_size(file: Path, power: int) -> None:
    size = 2**power + 2**power // 3 + 5
    chain = Chain(size)
    with TreeCache(file, chain) as cache:
        cache.root(size)
    chance = random.Random(power)
    for index in [0, size - 1, *(chance.randrange(size) for _ in range(20))]:
        with TreeCache(file, chain) as cache:
            chain.read = 0
            cache.path(index, size)
            assert cache.rows_read <= READS_PER_LEVEL * power
            assert (
                chain.read <= READS_PER_LEVEL * power + 2 * BLOCK
            )  # one chain hash a row, and unfinished blocks
            chain.read = cache.rows_read = 0
            cache.root(size)
            assert cache.rows_read + chain.read <= READS_PER_LEVEL * power + 2 * BLOCK


def test_new_leaves_alone_are_read_when_the_ledger_grows(file: Path) -> None:
    chain = Chain(10_000)
    whole(chain, file)
    chain.grow(40)
    with TreeCache(file, chain) as cache:
        chain.read = 0
        cache.root(10_040)
        assert chain.read <= 40 + READS_PER_LEVEL * 14 + 2 * BLOCK


def spoilt(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    raw = file.read_bytes()
    yield "gone", file.unlink
    yield "empty", lambda: file.write_bytes(b"")
    yield "a header cut short", lambda: file.write_bytes(raw[: HEADER_BYTES - 1])
    yield "another program's", lambda: file.write_bytes(b"x" * len(raw))
    yield "cut within a row", lambda: file.write_bytes(raw[: HEADER_BYTES + 7 * ROW_BYTES + 9])
    yield "zeros at the end", lambda: file.write_bytes(raw[:-400] + bytes(400))
    yield "too long", lambda: file.write_bytes(raw + raw[HEADER_BYTES:])
    yield (
        "rows swapped",
        lambda: file.write_bytes(
            raw[:HEADER_BYTES]
            + raw[HEADER_BYTES + ROW_BYTES :]
            + raw[HEADER_BYTES : HEADER_BYTES + ROW_BYTES]
        ),
    )
    chance = random.Random(3)
    for _ in range(40):
        bent = bytearray(raw)
        bent[chance.randrange(len(bent))] ^= 1 << chance.randrange(8)
        yield "a bit", lambda bent=bytes(bent): file.write_bytes(bent)  # type: ignore[misc]


def test_whatever_happens_to_the_file_the_answer_is_right(file: Path) -> None:
    chain = Chain(333)
    whole(chain, file)
    right = file.read_bytes()
    for what, spoil in spoilt(file):
        spoil()
        whole(chain, file, 333, 160, 17)
        file.write_bytes(right)
        assert what


def test_the_file_of_another_ledger_counts_for_nothing(file: Path) -> None:
    whole(Chain(400, seed=1, store_id="store_1111111111111"), file)
    whole(Chain(300), file)
    whole(Chain(500, seed=2), file)  # the same store id, as after a restored backup that went on otherwise


def test_a_ledger_that_parts_from_the_cached_one_is_read_anew(file: Path) -> None:
    chain = Chain(500)
    whole(chain, file)
    del chain.rows[250:]
    whole(chain, file)
    chain.grow(400, seed=9)
    whole(chain, file)


@pytest.mark.parametrize("what", ["a folder", "a link", "a pipe", "no folder"])
def test_where_no_file_can_be_the_tree_is_made_in_memory(tmp_path: Path, what: str) -> None:
    place, elsewhere = tmp_path / "tree.cache", tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    if what == "a folder":
        place.mkdir()
    elif what == "a link":
        place.symlink_to(elsewhere)
    elif what == "a pipe":
        os.mkfifo(place)
    else:
        place = tmp_path / "absent" / "tree.cache"
    whole(Chain(300), place)
    assert elsewhere.read_bytes() == b"precious"


def test_two_that_write_at_once_leave_a_file_that_serves(file: Path) -> None:
    chain = Chain(6_000)
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(15):
                size = chance.randrange(1, 6_000)
                with TreeCache(file, chain) as cache:
                    if chance.random() < 0.2:
                        cache.forget()
                    assert cache.root(size) == root_of(chain.leaves[:size])
        except BaseException as fault:  # noqa: BLE001 - told below, by the test's own thread
            wrong.append(fault)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    whole(chain, file)


def test_a_forged_cache_with_good_checksums_changes_no_proof_and_no_checkpoint(
    run: Callable[..., object], signed: Path, root: Path, more: Callable[..., None], keys: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from store.paths import ledger_path
    from store.proofs.note import read_verifier
    from store.proofs.source import open_source

    more(root, 30)
    path = ledger_path(root, "default", None)
    file = cache_path(path)

    def forge() -> None:
        with open_source(root, path, "default", None) as source, TreeCache(file, source) as cache:
            cache.root(source.size)
            for block in range(2):
                (_, chain), *_ = source.links(BLOCK * (block + 1) - 1, BLOCK * (block + 1))
                row = cache._row(block, hashlib.sha256(b"forged").digest(), chain)
                os.pwrite(cache._file.fileno(), row, HEADER_BYTES + block * ROW_BYTES)

    forge()
    assert run("prove", 40, "--checkpoint", signed).code == 0  # type: ignore[attr-defined]
    monkeypatch.setattr(signing, "FULL_CHECK_ENTRIES", 10)
    forge()
    done = run("checkpoint")
    assert done.code == 0  # type: ignore[attr-defined]
    known = [read_verifier((keys / "deskbook.pub").read_text())]
    state = open_checkpoint(done.out.encode(), known).checkpoint  # type: ignore[attr-defined]
    with open_source(root, path, "default", None) as source:
        assert state.root == root_of([leaf for leaf, _ in source.links(0, source.size)])
