"""The same texts give the same answers, to the last bit, however they were written and on however many threads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from store.commands import OpenThesis, Remember, UpdateThesis
from store.vectors.scan import EXACT_ROWS, Scan

if TYPE_CHECKING:
    from conftest import StartHand

pytestmark = pytest.mark.slow

QUERIES: Final = 12
LIMIT: Final = 300


@pytest.mark.parametrize("rows", [1_500, EXACT_ROWS + 1_500])
def test_other_batches_and_other_numbers_of_threads_give_the_same_order_and_scores(
    rows: int, tmp_path: Path, written: Any, wanting: Any, start_hand: StartHand
) -> None:
    """P223: whatever the libraries that multiply are told, and whichever batches the file grew by."""
    chosen = np.random.default_rng(rows)
    vectors = chosen.standard_normal((rows, 384))
    vectors[rows // 2 :: 3] = vectors[0]  # and many that are equal
    queries = np.vstack([vectors[:2], chosen.standard_normal((QUERIES - 2, 384))]).astype(np.float32)
    np.save(tmp_path / "queries.npy", queries)
    batches = {"one": [], "few": [1, 700, 20], "many": [97] * (rows // 97)}
    paths = {name: tmp_path / f"{name}.vectors" for name in batches}
    scan = Scan(written(paths["one"], vectors))
    written(paths["few"], vectors, batches["few"])
    written(paths["many"], vectors, batches["many"])
    expected = [
        [[near.sequence, near.cosine.hex()] for near in scan.nearest(query, wanting(), LIMIT)]
        for query in queries
    ]
    hands = [
        start_hand("nearest", path, tmp_path / "queries.npy", LIMIT, OPENBLAS_NUM_THREADS=threads, **more)
        for path in paths.values()
        for threads, more in (("1", {}), ("2", {}), ("2", {"OPENBLAS_CORETYPE": "Nehalem"}))
    ]
    for hand in hands:
        assert [hand.says() for _ in queries] == expected
        assert hand.wait() == 0


@pytest.mark.parametrize("most", [1, 2, 7, 1_000])
def test_a_ledger_gives_the_same_rows_in_whichever_batches_it_is_embedded(
    most: int, desk: Any, desk_of: Any, make_embedder: Any
) -> None:
    """P223."""
    for number in range(20):
        thesis = desk.seat.do(OpenThesis(text=f"Long {number}. // Two parts."))
        desk.seat.do(Remember(text=f"note {number % 3}"))
        if number % 2:
            desk.seat.do(UpdateThesis(thesis_id=thesis.id, text=f"Longer {number}. // Two parts."))
    desk.embed(most=32)
    whole = desk.held()
    desk.index.forget()
    again = desk_of(desk.seat, make_embedder())
    again.embed(most=most)
    assert again.held() == whole
