"""How well contradictions are told from what only looks like one, on pairs labelled by hand.

All of `conflict_pairs.jsonl` was written before the detector: thirty conflicts, thirty traps. It was tuned on the
even ids and, against false alarms, on the benchmarks' notes; nothing was changed because of an odd id. `pytest -s`
shows the figures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.screening.contradictions import Claim, compare
from store.screening.nearness import nearest

_PAIRS = Path(__file__).with_name("conflict_pairs.jsonl")
_NOTES = Path(__file__).parents[1] / "benchmarks" / "trading_notes" / "memories.jsonl"
_SIDES = ("newer", "older")
_HALVES = ("tuned", "held out")
_LEAST = {"tuned": (0.93, 0.93), "held out": (0.85, 0.75)}
"""Precision and recall."""
_LATER = Path(__file__).with_name("later_pairs.jsonl")
_LEAST_LATER = {"tuned": (0.9, 0.9), "held out": (0.8, 0.65)}
_FALSE_ALARMS = 0.01
"""Of pairs of notes on one instrument that a desk kept over two years, none of them written as a conflict."""


def _pairs(half: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in _PAIRS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["id"] % 2 == _HALVES.index(half)]


def _why(row: dict[str, Any]) -> str | None:
    newer, older = (Claim(symbol=row["symbol"], **row[side]) for side in ("newer", "older"))
    return compare(newer, older)


def _why_later(row: dict[str, Any]) -> str | None:
    newer, older = (Claim(kind="memory", symbol=row["symbol"], text=row[side]) for side in ("newer", "older"))
    return compare(newer, older)


def test_there_are_sixty_pairs_half_of_them_traps_in_each_half() -> None:
    for half in _HALVES:
        rows = _pairs(half)
        assert len(rows) == 30
        assert sum(row["conflict"] for row in rows) == 15
    kinds = {row["why"] for half in _HALVES for row in _pairs(half) if row["conflict"]}
    assert kinds == {"direction", "target", "horizon", "number", "negation"}


@pytest.mark.parametrize("half", _HALVES)
def test_conflicts_are_told_from_traps(half: str) -> None:
    rows = _pairs(half)
    told = [(row, why) for row in rows if (why := _why(row)) not in (None, "near_repeat")]
    right = [(row, why) for row, why in told if row["conflict"]]
    precision = len(right) / len(told)
    recall = len(right) / sum(row["conflict"] for row in rows)
    named = sum(row["why"] == why for row, why in right)
    figures = (
        f"precision {precision:.2f}, recall {recall:.2f}, the kind as labelled in {named} of {len(right)}"
    )
    print(f"\n{half}: {figures}")  # noqa: T201
    least_precision, least_recall = _LEAST[half]
    assert precision >= least_precision
    assert recall >= least_recall


@pytest.mark.parametrize("half", _HALVES)
def test_pairs_written_after_the_detector_are_told_apart_less_well(half: str) -> None:
    """Written in four batches, each first measured, then tuned on; the last was only measured.

    It gave a precision of 0.88 and a recall of 0.70, and showed plural nouns taken for verbs, which was mended.
    """
    rows = [json.loads(line) for line in _LATER.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["part"] == half]
    told = [row for row in rows if _why_later(row) not in (None, "near_repeat")]
    right = sum(row["conflict"] for row in told)
    precision, recall = right / len(told), right / sum(row["conflict"] for row in rows)
    print(f"\nwritten later, {half}: {len(rows)} pairs, precision {precision:.2f}, recall {recall:.2f}")  # noqa: T201
    least_precision, least_recall = _LEAST_LATER[half]
    assert precision >= least_precision
    assert recall >= least_recall


def test_the_notes_of_two_years_raise_few_false_alarms() -> None:
    by_symbol: dict[str, list[Claim]] = {}
    for line in _NOTES.read_text(encoding="utf-8").splitlines():
        note = json.loads(line)
        if note["symbol"] is not None:
            claim = Claim(kind=note["kind"], symbol=note["symbol"], text=note["text"])
            by_symbol.setdefault(note["symbol"], []).append(claim)
    pairs = [
        (new, old) for notes in by_symbol.values() for place, new in enumerate(notes) for old in notes[:place]
    ]
    alarms = sum(compare(new, old) not in (None, "near_repeat") for new, old in pairs)
    print(f"\nbenchmark notes: {alarms} of {len(pairs)} pairs")  # noqa: T201
    assert len(pairs) > 1_000
    assert alarms <= _FALSE_ALARMS * len(pairs)


def test_hardly_a_contradiction_is_lost_by_looking_first_at_shared_words() -> None:
    pairs = [(row, _why) for half in _HALVES for row in _pairs(half)]
    pairs += [(json.loads(line), _why_later) for line in _LATER.read_text(encoding="utf-8").splitlines()]
    told = [row for row, why in pairs if why(row) not in (None, "near_repeat")]
    kept = 0
    for row in told:
        sides = (
            row[side] if isinstance(row[side], dict) else {"kind": "memory", "text": row[side]}
            for side in _SIDES
        )
        newer, older = (Claim(symbol=row["symbol"], **side) for side in sides)
        kept += bool(nearest(newer, [older], 1))
    print(f"\n{kept} of {len(told)} are looked at")  # noqa: T201
    assert kept >= 0.95 * len(told)
