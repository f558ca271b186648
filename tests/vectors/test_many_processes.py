"""Processes that embed one ledger at once share the work, and readers beside them see whole rows only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.commands import Remember

if TYPE_CHECKING:
    from conftest import StartHand

TEXTS = 150


def test_each_text_is_embedded_by_one_of_them(desk: Any, start_hand: StartHand) -> None:
    for number in range(TEXTS):
        desk.seat.do(Remember(text=f"note number{number} of the desk"))
    hands = [start_hand("embed-at-once", desk.root, 3) for _ in range(3)]
    for hand in hands:
        assert hand.says() == "ready"
    for hand in hands:
        hand.go()
    while desk.reach() < desk.seat.book.head().sequence:
        assert all(hand.process.poll() in (None, 0) for hand in hands)
        rows = desk.held(desk.index)
        sequences = [row[0] for row in rows]
        assert sequences == sorted(set(sequences))
        found = desk.near("note number1 of the desk", limit=TEXTS)
        assert len(found) >= len(rows)
    told: list[Any] = [hand.says() for hand in hands]
    assert [hand.wait() for hand in hands] == [0, 0, 0]
    asked = [text for each in told for text in each["asked"]]
    assert len(asked) == TEXTS
    assert set(asked) == {f"note number{number} of the desk" for number in range(TEXTS)}
    assert len(desk.held()) == TEXTS
    assert desk.near("note number77 of the desk")[0].cosine > 0.999


def test_one_that_is_killed_holds_nobody_up(desk: Any, start_hand: StartHand) -> None:
    for number in range(TEXTS):
        desk.seat.do(Remember(text=f"note number{number} of the desk"))
    hand = start_hand("embed-at-once", desk.root, 1)
    assert hand.says() == "ready"
    hand.go()
    while not desk.held():
        assert hand.process.poll() is None
    hand.process.kill()
    hand.wait()
    held = len(desk.held())
    assert desk.embed() == TEXTS - held
    assert len({row[0] for row in desk.held()}) == TEXTS
