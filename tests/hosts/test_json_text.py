"""JSON with comments, edited: the change is made, and every other character stays as it was."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.hosts.faults import UneditableText, UnreadableText
from server.hosts.json_text import read, with_item, with_member, without_item, without_member
from server.hosts.syntax import parse

ENTRY = {"type": "stdio", "command": "/x/deskbook", "args": ["serve", "é"], "env": {"K": "v"}}
HELD = ["{}", "{ }", "{\n  }", "{ // mine\n }", '{"a": {}}', '{"a": {},}', '{\n    "a": {} // first\n  }']


@st.composite
def gaps(draw: st.DrawFn, newline: str) -> str:
    pieces = [
        " ",
        "\t",
        newline,
        "/* x */",
        f"// y{newline}",
        f"/* {newline} */",
        f"{newline}    ",
        "//{ ,\t",
    ]
    chosen = draw(st.lists(st.sampled_from(pieces), max_size=3))
    return "".join(piece + newline if piece == "//{ ,\t" else piece for piece in chosen)


@st.composite
def values(draw: st.DrawFn, newline: str, depth: int, kinds: str = "nstoa") -> str:
    kind = draw(st.sampled_from(kinds if depth else "nst"))
    if kind == "n":
        return draw(st.sampled_from(["0", "-7", "1.5e3", "12345678901234567890"]))
    if kind == "s":
        return json.dumps(
            draw(st.sampled_from(["", "a//b", "/* ", '"', "é\u2028", ",}", "\\"])), ensure_ascii=False
        )
    if kind == "t":
        return draw(st.sampled_from(["true", "false", "null"]))
    gap = gaps(newline)
    names = draw(st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True))
    children = []
    for name in names:
        key = f'"{name}"{draw(gap)}:{draw(gap)}' if kind == "o" else ""
        children.append(key + draw(values(newline, depth - 1)) + draw(gap))
    body = ("," + draw(gap)).join(children)
    if children and draw(st.booleans()):
        body += "," + draw(gap)
    opening, closing = "{}" if kind == "o" else "[]"
    return f"{opening}{draw(gap)}{body}{closing}"


@st.composite
def files(draw: st.DrawFn) -> str:
    """An object with comments, blanks and trailing commas wherever they may stand."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    gap = gaps(newline)
    return draw(gap) + draw(values(newline, 3, "o")) + draw(gap)


def comments(text: str) -> list[str]:
    found = re.findall(r'"(?:\\.|[^"\\])*"|//[^\r\n]*|/\*.*?\*/', text, re.DOTALL)
    return [token for token in found if not token.startswith('"')]


@given(text=files(), data=st.data())
def test_an_entry_put_in_and_taken_out_again_leaves_the_text_byte_for_byte(
    text: str, data: st.DataObject
) -> None:
    before = read(text, ())
    objects = [name for name, value in before.items() if isinstance(value, dict)]
    path = (data.draw(st.sampled_from([*objects, "servers"])),)
    installed = with_member(text, path, "deskbook", ENTRY)
    wanted = deepcopy(before)
    wanted.setdefault(path[0], {})["deskbook"] = ENTRY
    assert read(installed, ()) == wanted
    removed = without_member(installed, path, "deskbook")
    if path[0] not in before:
        assert read(removed, ()) == before | {path[0]: {}}
        removed = without_member(removed, (), path[0])
    assert removed == text


@given(text=files(), data=st.data())
def test_any_member_is_replaced_or_taken_out_alone_and_no_comment_goes_with_it(
    text: str, data: st.DataObject
) -> None:
    before = read(text, ())
    if not before:
        return
    name = data.draw(st.sampled_from(list(before)))
    rest = {key: value for key, value in before.items() if key != name}
    removed = without_member(text, (), name)
    assert read(removed, ()) == rest
    assert read(with_member(text, (), name, ENTRY), ()) == rest | {name: ENTRY}
    # Every line outside the member that holds a comment is still there.
    member = parse(text).member(name)
    assert member is not None
    outside = text[: member.start] + text[member.node.end :]
    assert comments(removed) == comments(outside)


@given(text=files())
def test_an_item_put_into_a_list_and_taken_out_again_leaves_the_text_byte_for_byte(text: str) -> None:
    before = read(text, ())
    lists = [name for name, value in before.items() if isinstance(value, list)]
    for name in lists:
        added = with_item(text, name, ENTRY)
        assert read(added, (name,)) == [*before[name], ENTRY]
        assert without_item(added, name, ENTRY) == text


@given(
    text=files(), at=st.integers(0, 400), junk=st.sampled_from(["{", '"', "}", ":", "/*", "'", "x", "\x00"])
)
def test_a_broken_text_is_refused_with_a_place_inside_it_or_read_as_what_it_says(
    text: str, at: int, junk: str
) -> None:
    broken = text[:at] + junk + text[at:]
    lines = broken.split("\n")
    fault: Exception | None = None
    try:
        installed = with_member(broken, ("servers",), "deskbook", ENTRY)
        assert read(installed, ("servers", "deskbook")) == ENTRY
    except (UnreadableText, UneditableText) as found:
        fault = found
    if isinstance(fault, UnreadableText):
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_whatever_stands_in_the_object_of_servers_is_kept(held: str, newline: str) -> None:
    text = ('{\n  "a": 1,\n  "servers": ' + held + "\n}\n").replace("\n", newline)
    installed = with_member(text, ("servers",), "deskbook", ENTRY)
    assert read(installed, ("servers", "deskbook")) == ENTRY
    assert without_member(installed, ("servers",), "deskbook") == text
    assert newline == "\n" or "\n" not in installed.replace("\r\n", "")


def test_the_entry_takes_the_files_indentation_and_leaves_comments_on_their_lines() -> None:
    text = '{\n\t// servers\n\t"mcpServers": {\n\t\t"other": {"command": "x"} // mine\n\t}\n}'
    assert with_member(text, ("mcpServers",), "deskbook", {"command": "d", "args": ["serve"]}) == (
        '{\n\t// servers\n\t"mcpServers": {\n\t\t"other": {"command": "x"}, // mine\n'
        '\t\t"deskbook": {\n\t\t\t"command": "d",\n\t\t\t"args": ["serve"]\n\t\t}\n\t}\n}'
    )


def test_an_object_on_one_line_stays_on_one_line() -> None:
    assert with_member('{"m": {"a": 1}}', ("m",), "b", {"c": [1]}) == '{"m": {"a": 1, "b": {"c": [1]}}}'


def test_a_line_comment_before_a_removed_member_swallows_nothing() -> None:
    text = '{"a": 1, // note\n "b": 2}'
    assert without_member(text, (), "b") == '{"a": 1 // note\n }'


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("{\n  'a': 1\n}", 2, 3),
        ('{"a" 1}', 1, 6),
        ('{"a": 1 "b": 2}', 1, 9),
        ('{"a": }', 1, 7),
        ('{"a": 01}', 1, 8),
        ("[1, 2", 1, 6),
        ("{} x", 1, 4),
        ('{"a": "\n"}', 1, 8),
        ("{\n/* never closed\n}", 2, 1),
        ('{"a": NaN}', 1, 7),
        ("[" * 5_000, 1, 202),
        ('{"a": ' + "9" * 5_000 + "}", 1, 7),
    ],
)
def test_text_that_does_not_parse_is_refused_at_its_line_and_column(
    text: str, line: int, column: int
) -> None:
    with pytest.raises(UnreadableText) as caught:
        with_member(text, ("servers",), "deskbook", ENTRY)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    ["[]", "3", '{"servers": []}', '{"servers": null}', '{"servers": {}, "servers": {}}',
     '{"servers": {"deskbook": 1, "deskbook": 2}}'],
)  # fmt: skip
def test_a_file_in_which_the_place_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(UneditableText):
        with_member(text, ("servers",), "deskbook", ENTRY)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_file_becomes_one_with_the_entry(text: str) -> None:
    made = with_member(text, ("servers",), "deskbook", ENTRY)
    assert json.loads(made) == {"servers": {"deskbook": ENTRY}}
    assert made.endswith("}\n")


@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_plain_json_is_read_as_json_reads_it(value: Any) -> None:
    assert parse(json.dumps({"v": value})).value == {"v": value}
