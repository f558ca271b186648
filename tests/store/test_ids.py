"""Ids keep their form; those that an index holds lie together, and none tells a time or can be guessed."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from store import ids
from store.ids import EVENT, MEMORY_ID, PREFIXES, RETRIEVAL, SESSION, STORE, new_id

PLACED = [*PREFIXES.values(), EVENT, RETRIEVAL]
MADE = 2_000
HERE = Path(__file__).parents[2]
FORKS = """
import os
from store.ids import EVENT, new_id
print(new_id(EVENT), flush=True)
if os.fork() == 0:
    print(new_id(EVENT), flush=True)
    os._exit(0)
os.wait()
"""


def number(name: str) -> int:
    """The 65 bits of an id."""
    bits = 0
    for character in name.rpartition("_")[2]:
        bits = bits << 5 | "0123456789abcdefghjkmnpqrstvwxyz".index(character)
    return bits


@pytest.mark.parametrize("prefix", [*PLACED, SESSION, STORE])
def test_an_id_is_its_prefix_and_13_characters(prefix: str) -> None:
    made = {new_id(prefix) for _ in range(MADE)}
    assert len(made) == MADE
    assert all(re.fullmatch(rf"{prefix}_[0-9a-hjkmnp-tv-z]{{13}}", name) for name in made)
    if prefix in PREFIXES.values():
        assert all(MEMORY_ID.fullmatch(name) for name in made)


@pytest.mark.parametrize("prefix", PLACED)
def test_ids_that_an_index_holds_sort_as_they_were_made_and_end_at_random(prefix: str) -> None:
    ids._places.begin()
    made = [new_id(prefix) for _ in range(MADE)]
    places = [number(name) >> 35 for name in made]
    steps = {(after - before) % 2**30 for before, after in pairwise(places)}
    assert steps == {1}
    if places[0] < places[-1]:
        assert made == sorted(made)
    ends = [number(name) % 2**35 for name in made]
    assert len(set(ends)) > MADE - 5
    assert all(MADE // 3 < sum(end >> bit & 1 for end in ends) < 2 * MADE // 3 for bit in range(35))


@pytest.mark.parametrize("prefix", [SESSION, STORE])
def test_ids_that_open_something_are_random_in_every_bit(prefix: str) -> None:
    numbers = [number(new_id(prefix)) for _ in range(MADE)]
    assert all(MADE // 3 < sum(made >> bit & 1 for made in numbers) < 2 * MADE // 3 for bit in range(65))


def test_processes_begin_at_places_of_their_own_a_forked_one_too() -> None:
    begun = set()
    for _ in range(50):
        ids._places.begin()
        begun.add(number(new_id(EVENT)) >> 35)
    assert len(begun) == 50
    ran = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, cwd=HERE)
    parent, child = (number(name) >> 35 for name in ran.stdout.split())
    assert child not in range(parent, parent + 1_000)
