"""Lines to messages and messages to lines, without a process."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from server.frames import LineSplitter, Oversize, Refusal, encode, read_line, scrub

LIMIT = 1000
ANY_TEXT = st.text(st.characters(exclude_categories=()))  # surrogates too


def split(raw: bytes, step: int = 7, limit: int = LIMIT) -> list[bytes | Oversize]:
    lines = LineSplitter(limit)
    found = [line for at in range(0, len(raw), step) for line in lines.feed(raw[at : at + step])]
    return [*found, *lines.finish()]


def refused(line: bytes) -> Refusal:
    found = read_line(line, LIMIT)
    assert isinstance(found, Refusal)
    return found


def request(line: str) -> JSONRPCRequest:
    found = read_line(line.encode(), LIMIT)
    assert isinstance(found, JSONRPCRequest)
    return found


def test_lines_are_cut_wherever_the_chunks_fall() -> None:
    raw = b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"b":2}\n{"last":3}'
    for step in range(1, len(raw) + 1):
        assert split(raw, step) == [b'{"a":1}', b'{"b":2}', b'{"last":3}']


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=6), st.integers(1, 50))
def test_the_splitter_gives_every_line_that_is_not_blank(lines: list[bytes], step: int) -> None:
    expected = [line.strip() for line in lines if line.strip()]
    found = split(b"\n".join(lines), step)
    if not (lines and lines[0].startswith(b"\xef\xbb\xbf")):
        assert found == expected


@pytest.mark.parametrize("step", [1, 3, 64, 10_000])
def test_an_oversize_line_keeps_only_its_ends_and_the_next_line_is_whole(step: int) -> None:
    long = b'{"id":1,' + b"x" * 9_000 + b'"end":2}'
    over, following = split(long + b"\n" + b'{"next":1}\n', step, limit=5_000)
    assert isinstance(over, Oversize)
    assert over.size == len(long)
    assert over.head == long[:4096]
    assert over.tail == long[-4096:]
    assert following == b'{"next":1}'


def test_a_line_of_exactly_the_limit_is_read() -> None:
    assert split(b"x" * LIMIT + b"\n") == [b"x" * LIMIT]


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    found = read_line(raw, LIMIT)
    if isinstance(found, Refusal):
        assert found.code in (-32700, -32600, -32602)


@given(st.text(alphabet='{}[],:"\\ide0123456789.-+Ntrufalsn ', max_size=60))
def test_no_text_that_looks_like_json_raises(raw: str) -> None:
    read_line(raw.encode(), LIMIT)


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"nonsense", -32700, None),
        (b'{"jsonrpc":"2.0","id":4,"method":"x"', -32700, 4),
        (b'{"jsonrpc":"2.0","id":"four","method":"x",}', -32700, "four"),
        (b'{"jsonrpc":"2.0","method":"x\xff","id":5}', -32700, 5),
        (b'{"jsonrpc":"2.0","id":6,"method":"x","params":{"t":"a\x00b"}}', -32700, 6),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"17", -32600, None),
        (b'"text"', -32600, None),
        (b"null", -32600, None),
        (b"NaN", -32600, None),
        (b"{}", -32600, None),
        (b'{"id":7,"method":"x"}', -32600, 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"x"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, 1.5),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":8,"method":"x","params":[1]}', -32602, 8),
    ],
)
def test_what_is_no_request_is_refused_with_the_id_where_it_can_be_read(
    line: bytes, code: int, request_id: Any
) -> None:
    found = refused(line)
    assert (found.code, found.id) == (code, request_id)


def test_an_id_among_the_arguments_is_never_taken_for_the_requests() -> None:
    assert refused(b'{"method":"x","params":{"id":3,"more":[{"id":4}]},').id is None
    assert refused(b'{"method":"x","params":{"id":3},"id":9').id is None
    assert refused(b'{"method":"x","params":{"id":3},"id":9,').id == 9
    assert refused(b'{"method":"x","params":{"t":"\\"id\\":3}"}').id is None


def test_an_oversize_request_is_refused_with_its_id_from_either_end() -> None:
    middle = b"x" * 10_000
    for line in (
        b'{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"text":"' + middle + b'"}}',
        b'{"method":"tools/call","params":{"id":5,"text":"' + middle + b'"},"jsonrpc":"2.0","id":31}\r',
        b'{"params":{"text":"' + middle + b'"},"id":31,"method":"tools/call","jsonrpc":"2.0"}',
    ):
        (over,) = split(line, limit=5_000)
        found = read_line(over, 5_000)
        assert isinstance(found, Refusal)
        assert found.id == 31
        assert found.data == {"received": len(line), "limit": 5_000, "stored": "no"}
        assert str(len(line)) in found.message
        assert "5000" in found.message


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [101, 10_000, 1_000_000])
def test_deep_nesting_is_refused_with_its_id(opening: str, levels: int) -> None:
    line = '{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":' + opening * levels
    found = refused(line.encode())
    assert (found.code, found.id) == (-32600, 3)
    assert "nested" in found.message


def test_many_brackets_that_are_not_deep_are_read() -> None:
    flat = ",".join(["[]"] * 5_000)
    found = request(
        '{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":[' + flat + '],"t":"' + "[{" * 500 + '"}}'
    )
    assert found.params is not None
    assert len(found.params["a"]) == 5_000


def test_surrogates_and_numbers_outside_json_reach_the_arguments_as_they_are() -> None:
    """P051 (transport part)."""
    found = request(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800","arguments":'
        '{"text":"a\\udfffb","n":NaN,"i":Infinity,"j":-Infinity,"k":1e999,"\\udc00":1}}}'
    )
    assert found.params is not None
    given = found.params["arguments"]
    assert found.params["name"] == "\ud800"
    assert given["text"] == "a\udfffb"
    assert math.isnan(given["n"])
    assert [given["i"], given["j"], given["k"]] == [math.inf, -math.inf, math.inf]
    assert given["\udc00"] == 1


def test_integers_of_any_length_are_read() -> None:
    long, longer = "9" * 4_000, "9" * 100_000
    line = f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{long},"b":{longer},"c":-{longer}}}}}'
    found = request(line)
    assert found.params == {"a": int(long), "b": math.inf, "c": -math.inf}


def test_ids_of_any_length_come_back_as_they_are() -> None:
    for request_id in (2**63, 10**3_000, "x" * 5_000, "9" * 5_000, ""):
        found = request(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "x"}))
        assert found.id == request_id
        answer = encode(JSONRPCResponse(jsonrpc="2.0", id=found.id, result={}))
        assert json.loads(answer)["id"] == request_id


def test_a_nul_in_a_string_is_read_when_escaped() -> None:
    """P049 (transport part)."""
    found = request('{"jsonrpc":"2.0","id":1,"method":"x","params":{"text":"pre\\u0000suf"}}')
    assert found.params == {"text": "pre\0suf"}


def test_notifications_and_replies_are_read_and_malformed_ones_wait_for_nobody() -> None:
    assert isinstance(read_line(b'{"jsonrpc":"2.0","method":"n"}', LIMIT), JSONRPCNotification)
    assert isinstance(read_line(b'{"jsonrpc":"2.0","id":1,"result":{}}', LIMIT), JSONRPCResponse)
    assert isinstance(
        read_line(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}', LIMIT), JSONRPCError
    )
    assert read_line(b'{"jsonrpc":"2.0","method":"n","params":[1]}', LIMIT) is None
    for told in (b'"result":5', b'"result":null', b'"error":"e"'):
        found = read_line(b'{"jsonrpc":"2.0","id":1,' + told + b"}", LIMIT)
        assert isinstance(found, JSONRPCError)
        assert (found.id, found.error.code) == (1, -32600)
        for odd in (b"", b'"id":null,', b'"id":1.5,', b'"id":[1],'):
            assert read_line(b'{"jsonrpc":"2.0",' + odd + told + b"}", LIMIT) is None


def test_a_result_is_scrubbed_on_its_way_out() -> None:
    """P051 (transport part)."""
    result = {"a": "x\ud800y", "n": [math.nan, math.inf, 1.5], "\udfff": ("\ud83d\ude00",), "big": 10**6_000}
    line = encode(JSONRPCResponse(jsonrpc="2.0", id=1, result=result))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = json.loads(line, parse_constant=pytest.fail)["result"]
    assert found == {"a": "x\ufffdy", "n": [None, None, 1.5], "\ufffd": ["\U0001f600"], "big": None}


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters(exclude_categories=())),
        lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
        max_leaves=15,
    )
)
def test_whatever_a_handler_returns_becomes_one_line_of_strict_json(value: Any) -> None:
    line = encode({"jsonrpc": "2.0", "id": 1, "result": {"value": value}})
    assert line.count(b"\n") == 1
    json.loads(line.decode("utf-8"), parse_constant=pytest.fail)


def test_scrubbing_leaves_what_is_already_clean() -> None:
    clean = {"a": ["text", 1, True, None, 2.5, {"b": "目标价"}]}
    assert scrub(clean) == clean
