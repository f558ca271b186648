"""The tree is that of RFC 6962: known vectors, and a naive implementation on trees of every shape."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.audit_tree import Roots
from store.proofs.tree import (
    EMPTY_ROOT,
    Frontier,
    audit_path,
    node_hash,
    peaks_of,
    root_at,
    root_by_path,
    root_of,
)

# The inputs, roots and paths of the certificate-transparency project's own Merkle tree tests.
INPUTS = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
PATHS = {
    (0, 1): (),
    (0, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (5, 8): (
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
    (2, 3): ("fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",),
    (1, 5): (
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ),
}
LEAVES = [hashlib.sha256(b"\x00" + bytes.fromhex(text)).digest() for text in INPUTS]


def complete(leaves: list[bytes]):  # type: ignore[no-untyped-def]
    return lambda level, index: naive(leaves[index << level : (index + 1) << level])


def naive(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word, on leaf hashes."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + naive(leaves[:k]) + naive(leaves[k:])).digest()


def naive_path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1, word for word."""
    if len(leaves) == 1:
        return []
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if index < k:
        return [*naive_path(index, leaves[:k]), naive(leaves[k:])]
    return [*naive_path(index - k, leaves[k:]), naive(leaves[:k])]


def some_leaves(size: int) -> list[bytes]:
    return [hashlib.sha256(b"\x00" + str(number).encode()).digest() for number in range(size)]


@pytest.mark.parametrize("size", range(1, 9))
def test_the_known_roots_come_out(size: int) -> None:
    assert root_of(LEAVES[:size]).hex() == ROOTS[size - 1]
    assert root_at(size, complete(LEAVES)).hex() == ROOTS[size - 1]


def test_the_root_of_nothing_is_the_hash_of_nothing() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert root_of([]).hex() == root_at(0, complete([])).hex() == EMPTY_ROOT.hex() == empty


@pytest.mark.parametrize(("index", "size"), PATHS)
def test_the_known_paths_come_out(index: int, size: int) -> None:
    path = audit_path(index, size, complete(LEAVES))
    assert [each.hex() for each in path] == list(PATHS[index, size])
    assert root_by_path(LEAVES[index], index, size, path).hex() == ROOTS[size - 1]


@given(st.integers(1, 300), st.data())
def test_roots_and_paths_are_those_of_the_naive_tree(size: int, data: st.DataObject) -> None:
    leaves = some_leaves(size)
    index = data.draw(st.integers(0, size - 1))
    root, path = naive(leaves), naive_path(index, leaves)
    assert root_of(leaves) == root_at(size, complete(leaves)) == root
    assert audit_path(index, size, complete(leaves)) == path
    assert root_by_path(leaves[index], index, size, path) == root


@given(st.integers(1, 200), st.data())
def test_a_path_proves_nothing_of_another_leaf_place_or_size(size: int, data: st.DataObject) -> None:
    leaves = some_leaves(size)
    index = data.draw(st.integers(0, size - 1))
    path = naive_path(index, leaves)
    root = naive(leaves)
    assert not _leads(hashlib.sha256(b"other").digest(), index, size, path, root)
    other = data.draw(st.integers(0, size + 3).filter(lambda number: number != index))
    assert not _leads(leaves[index], other, size, path, root)
    assert not _leads(leaves[index], index, size, [*path, root], root)
    if path:
        assert not _leads(leaves[index], index, size, path[:-1], root)
        at = data.draw(st.integers(0, len(path) - 1))
        bent = [*path]
        bent[at] = node_hash(bent[at], bent[at])
        assert not _leads(leaves[index], index, size, bent, root)


@given(st.integers(0, 300), st.integers(0, 100))
def test_a_tree_grows_on_from_its_peaks(size: int, added: int) -> None:
    leaves = some_leaves(size + added)
    peaks = [complete(leaves)(*place) for place in peaks_of(size)]
    frontier = Frontier(size, peaks)
    assert frontier.root() == naive(leaves[:size])
    for leaf in leaves[size:]:
        frontier.add(leaf)
    assert frontier.root() == naive(leaves)


@given(st.integers(0, 200))
def test_verify_computes_the_same_roots_with_code_of_its_own(size: int) -> None:
    leaves = some_leaves(size)
    roots = Roots(range(size + 2))
    for leaf in leaves:
        roots.add(leaf)
    assert roots.found == {number: naive(leaves[:number]) for number in range(size + 1)}


@pytest.mark.parametrize(("index", "size"), [(0, 0), (1, 1), (-1, 4), (4, 4)])
def test_a_leaf_that_is_not_there_has_no_path(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="no leaf"):
        audit_path(index, size, complete(some_leaves(8)))
    with pytest.raises(ValueError, match="no leaf"):
        root_by_path(LEAVES[0], index, size, [])


def _leads(leaf: bytes, index: int, size: int, path: list[bytes], root: bytes) -> bool:
    try:
        return root_by_path(leaf, index, size, path) == root
    except ValueError:
        return False
