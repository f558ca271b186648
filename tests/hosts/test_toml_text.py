"""TOML, edited: the table is added or taken out, and every other character stays as it was."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.hosts.faults import UneditableText, UnreadableText
from server.hosts.toml_text import read, with_table, without_table

PATH = ("mcp_servers",)
ENTRY = {"command": "/x/deskbook", "args": ["serve", "--config", 'a "b" é']}
PIECES = (
    'model = "x" # mine\n',
    "\n",
    "# a comment\n",
    "   \n",
    '[a]\nb = """\n[mcp_servers.deskbook]\n"""\n',
    "[mcp_servers.other] # theirs\n# why\ncommand = 'o'\n",
    '[mcp_servers."dotted.name"]\nurl = "u"\n\n# tail\n',
    "[[list]]\nx = 1\n",
    "[mcp_servers.other.env]\nK = 'v'\n",
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """A file of such pieces, each table once, with either line ending and perhaps without the last one."""
    chosen = draw(st.lists(st.sampled_from(range(len(PIECES))), max_size=6, unique=True))
    text = "".join(PIECES[number] for number in sorted(chosen, key=lambda number: (number != 0, number % 4)))
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(text=files())
def test_a_table_put_in_and_taken_out_again_leaves_the_text_byte_for_byte(text: str) -> None:
    before = tomllib.loads(text)
    installed = with_table(text, PATH, "deskbook", ENTRY)
    wanted = before | {"mcp_servers": before.get("mcp_servers", {}) | {"deskbook": ENTRY}}
    assert tomllib.loads(installed) == wanted
    assert installed.startswith(text)
    assert "\r\n" not in text or "\n" not in installed.replace("\r\n", "")
    assert without_table(installed, PATH, "deskbook") == text


@given(
    before=files(),
    after=st.sampled_from(["# mine\n[z]\ny = 1\n", "\n\n# tail", "[mcp_servers.z]\ncommand='c'\n"]),
)
def test_what_was_written_below_the_table_since_stays(before: str, after: str) -> None:
    if "\r" in before or not before.endswith("\n"):
        return
    text = with_table(before, PATH, "deskbook", ENTRY) + after
    assert without_table(text, PATH, "deskbook") == before + after


def test_a_standing_table_is_replaced_where_it_stands_with_all_that_is_below_it() -> None:
    text = "[mcp_servers.deskbook]\nurl = 'u'\n\n[mcp_servers.deskbook.env]\nK = 'v'\n# next\n[z]\ny = 1\n"
    assert with_table(text, PATH, "deskbook", {"url": "new"}) == (
        '[mcp_servers.deskbook]\nurl = "new"\n\n# next\n[z]\ny = 1\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "[mcp_servers] # all\ndeskbook = { command = 'd' } # ours\nother = { command = 'o' } # theirs\n",
        "[mcp_servers]\ndeskbook.command = 'd'\nother.command = 'o' # theirs\n",
        "mcp_servers = { deskbook = { command = 'd' }, other = { command = 'o' } } # theirs\n",
        '[ mcp_servers . "deskbook" ] # ours\ncommand = \'d\'\n[mcp_servers.other]\ncommand = "o" # theirs\n',
        "[mcp_servers.other]\ncommand = 'o' # theirs\n[mcp_servers.deskbook]\ncommand = '''\n[z]\n'''\n",
    ],
)
def test_an_entry_in_any_other_form_is_replaced_and_taken_out_alone(text: str) -> None:
    removed = without_table(text, PATH, "deskbook")
    assert tomllib.loads(removed) == {"mcp_servers": {"other": {"command": "o"}}}
    assert "# theirs" in removed
    replaced = with_table(text, PATH, "deskbook", ENTRY)
    assert read(replaced, PATH) == {"deskbook": ENTRY, "other": {"command": "o"}}
    assert "# theirs" in replaced


def test_tables_written_inline_take_the_entry_inline() -> None:
    assert read(with_table("mcp_servers = { a = { command = 'o' } }\n", PATH, "deskbook", ENTRY), PATH) == {
        "a": {"command": "o"},
        "deskbook": ENTRY,
    }


@pytest.mark.parametrize("text", ["mcp_servers = 3\n", "[[mcp_servers]]\na = 1\n"])
def test_a_file_in_which_servers_are_no_table_is_refused(text: str) -> None:
    with pytest.raises(UneditableText):
        with_table(text, PATH, "deskbook", ENTRY)


@pytest.mark.parametrize(
    ("text", "line", "column"), [("a = 1\nb = \n", 2, 5), ("a = 'x", 1, 0), ("[a]\n[a]\n", 2, 3)]
)
def test_text_that_does_not_parse_is_refused_at_its_line(text: str, line: int, column: int) -> None:
    with pytest.raises(UnreadableText) as caught:
        with_table(text, PATH, "deskbook", ENTRY)
    assert (caught.value.line, caught.value.column) == (line, column)
