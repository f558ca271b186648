"""Canonical bytes are those of RFC 8785, and the hashes are what the design says, byte for byte."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from store.canonical import ZERO_CHAIN, canonical, chain_hash, check_json, content_hash, parse_json_text
from store.entry import COLUMNS, HASHED, UNHASHED, Entry, leaf_of
from store.errors import InvalidInput
from store.ledger import event_of

# RFC 8785, appendix B: the bits of a double and how ECMAScript writes it.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "written"), NUMBERS.items())
def test_a_double_is_written_as_rfc_8785_says(bits: str, written: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value).decode() == written


def test_the_sample_of_rfc_8785_section_3_2_2_gives_its_bytes() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    found = list(json.loads(canonical(dict.fromkeys(keys))))
    assert found == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


JSON = st.recursive(
    st.none() | st.booleans() | st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_canonical_bytes_read_back_as_the_same_value(value: Any) -> None:
    assert _as_doubles(json.loads(canonical(value))) == _as_doubles(value)


ANY = st.recursive(
    st.none() | st.booleans() | st.text(st.characters()) | st.integers() | st.floats() | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
    | st.dictionaries(st.text(st.sampled_from("aZ_0\"\\\n\x7f\x80é\ud800\ufb33\U0001f600")), inner, max_size=5)
    | st.dictionaries(st.integers(0, 3) | st.text(max_size=2), inner, max_size=2),
    max_leaves=20,
)  # fmt: skip


@given(ANY)
def test_the_fast_way_to_canonical_bytes_gives_those_of_the_slow_one(value: Any) -> None:
    """Whatever is refused is refused alike."""
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as fault:
        with pytest.raises(type(fault)):
            canonical(value)
    else:
        assert canonical(value) == expected


def _as_doubles(value: Any) -> Any:
    """JSON knows one kind of number: a whole double may be read back as an integer."""
    if isinstance(value, dict):
        return {name: _as_doubles(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.fixture(scope="module")
def vector(fixtures: Path) -> dict[str, Any]:
    """The first two entries of a ledger, with the bytes each leaf is made of."""
    return dict(json.loads((fixtures / "ledger_vector.json").read_text(encoding="utf-8")))


def test_the_worked_vector_is_the_one_the_docs_show(vector: dict[str, Any], fixtures: Path) -> None:
    page = (fixtures.parents[1] / "docs" / "ledger.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert vector["entries"] in [json.loads(block) for block in blocks]


def test_the_worked_vector_follows_from_the_rules_alone(vector: dict[str, Any]) -> None:
    """Written with the standard library only, as a reader of the docs would write it."""
    outside = {"content", "content_salt", "leaf_sha256", "chain_sha256"}
    chain = bytes(32)
    for entry, leaf_bytes in zip(vector["entries"], vector["leaf_bytes"], strict=True):
        salt = bytes.fromhex(entry["content_salt"])
        assert hashlib.sha256(salt + entry["content"].encode()).hexdigest() == entry["content_sha256"]
        covered = {name: value for name, value in entry.items() if name not in outside}
        assert json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":")) == leaf_bytes
        leaf = hashlib.sha256(b"\x00" + leaf_bytes.encode()).digest()
        assert leaf.hex() == entry["leaf_sha256"]
        chain = hashlib.sha256(b"\x01" + chain + leaf).digest()
        assert chain.hex() == entry["chain_sha256"]


def test_the_code_gives_the_hashes_of_the_worked_vector(vector: dict[str, Any]) -> None:
    raw = {"arguments_sha256", "content_salt", "content_sha256", "leaf_sha256", "chain_sha256"}
    chain = ZERO_CHAIN
    for shown in vector["entries"]:
        assert tuple(shown) == COLUMNS
        named = {name: bytes.fromhex(v) if name in raw and v is not None else v for name, v in shown.items()}
        entry = Entry(**named)
        assert content_hash(entry.content_salt, entry.content.encode()) == entry.content_sha256
        assert leaf_of(entry) == entry.leaf_sha256
        chain = chain_hash(chain, entry.leaf_sha256)
        assert chain == entry.chain_sha256
        assert canonical(json.loads(entry.content)).decode() == entry.content
        assert event_of(entry).to_content() == entry.content


def test_every_column_is_covered_by_the_leaf_or_by_what_the_leaf_covers() -> None:
    assert set(HASHED) | UNHASHED == set(COLUMNS)
    assert {"content", "content_salt", "leaf_sha256", "chain_sha256"} == UNHASHED
    assert "content_sha256" in HASHED


def test_leaves_and_nodes_are_hashed_apart(vector: dict[str, Any]) -> None:
    leaf = bytes.fromhex(vector["entries"][0]["leaf_sha256"])
    assert chain_hash(ZERO_CHAIN, leaf) != hashlib.sha256(ZERO_CHAIN + leaf).digest()


REFUSED = {
    '{"a": NaN}': "evidence.a",
    '{"a": [1, Infinity]}': "evidence.a[1]",
    '{"a": -Infinity}': "evidence.a",
    '{"a": {"b": "x\\u0000y"}}': "evidence.a.b",
    '{"a": "\\ud800"}': "evidence.a",
    '{"a": 9007199254740992}': "evidence.a",
    '{"a": 1, "a": 2}': "evidence",
    "{'a': 1}": "evidence",
    '{"a": 1': "evidence",
    "": "evidence",
    "[" * 40 + "]" * 40: "evidence",
    "[" * 100_000: "evidence",
}


@pytest.mark.parametrize(("text", "field"), REFUSED.items(), ids=[text[:25] for text in REFUSED])
def test_json_text_that_cannot_be_kept_exactly_is_refused_by_its_path(text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        parse_json_text(text, field="evidence", example="{}")
    assert (fault.value.field or "").startswith(field)
    assert fault.value.hint


@given(JSON)
def test_a_value_that_passes_the_check_can_always_be_made_canonical(value: Any) -> None:
    try:
        check_json(value, field="evidence")
    except InvalidInput:
        return
    canonical(value)
