"""The README's reference says what the code does: tools, profiles, keys, commands, variables, labels, errors."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from server import errors as server_errors
from server.cli import app
from server.exchange import _shutting_down
from server.identity import _LABELS
from server.permissions import PROFILES, PROMPT_ACTIONS, TOOL_ACTIONS, Action
from server.prompts import PROMPTS
from server.resources import RESOURCES, TEMPLATES
from server.reviewers import VARIABLE as REVIEWER_TOKEN
from server.sections import HttpSettings
from server.settings import _VARIABLES
from server.stdio import MAX_FRAME_BYTES
from server.tools import TOOLS
from store import Book, Caller, lessons, limits, symbols, terms
from store import errors as store_errors
from store.errors import DeskbookError

Codes = Callable[[str], list[str]]
COMMON = ["--config", "--root", "--strategy", "--run"]


@pytest.fixture(scope="session")
def options() -> dict[str, list[str]]:
    """The long options of every command, as the command line knows them; "" stands for `deskbook` itself."""
    group: Any = typer.main.get_command(app)
    known = {"": group}
    for name, command in group.commands.items():
        below = getattr(command, "commands", {})
        known |= {f"{name} {word}": each for word, each in below.items()} or {name: command}
        if below and command.invoke_without_command:  # a group that does something alone
            known[name] = command
    return {
        name: [opt for p in command.params for opt in p.opts if opt.startswith("--")]
        for name, command in known.items()
    }


def _tree(fault: type[DeskbookError]) -> Iterator[type[DeskbookError]]:
    for child in fault.__subclasses__():
        if child.__module__ == store_errors.__name__:
            yield child
            yield from _tree(child)


def test_the_tools_table_names_every_tool_and_who_may_call_it(readme: Any, codes: Codes) -> None:
    told = {codes(row["tool"])[0]: row["who may call"] for row in readme.table("### Tools")}
    for tool in TOOLS:
        callers = [name for name, profile in PROFILES.items() if profile.allows(TOOL_ACTIONS[tool])]
        assert told.pop(tool) == ("all" if callers == list(PROFILES) else ", ".join(callers)), tool
    assert told == {}


def test_the_profiles_table_counts_the_tools_of_every_profile(readme: Any, codes: Codes) -> None:
    told = {codes(row["profile"])[0]: row["tools today"] for row in readme.table("### Profiles")}
    assert list(told) == list(PROFILES)
    for name, profile in PROFILES.items():
        count = sum(profile.allows(TOOL_ACTIONS[tool]) for tool in TOOLS)
        assert int(re.split(r"\D", told[name])[0]) == count, name


def test_the_security_page_shows_every_action_of_every_profile(
    documents: dict[str, Any], codes: Codes
) -> None:
    rows = documents["docs/security.md"].table("## Permission")
    assert [codes(row["action"]) for row in rows] == [[action.value] for action in Action]
    for row in rows:
        action = Action(codes(row.pop("action"))[0])
        assert row == {n: "yes" if p.allows(action) else "no" for n, p in PROFILES.items()}, action


def test_resources_and_prompts_are_named(readme: Any) -> None:
    _, _, tools = readme.text.partition("### Tools\n")
    said = tools.split("\n#")[0]
    for name in (*(item.uri for item in (*RESOURCES, *TEMPLATES)), *PROMPTS):
        assert f"`{name}`" in said, name
    assert {PROMPT_ACTIONS[name] for name in PROMPTS} == {Action.DECIDE, Action.THESIS}


def _command_of(words: list[str], options: dict[str, list[str]]) -> str:
    """The command that a line names, with its subcommand where it has one; "" for `deskbook` itself."""
    if not words or words[0].startswith("-"):
        return ""
    group = any(name.startswith(f"{words[0]} ") for name in options)
    alone = words[0] in options and (len(words) == 1 or words[1].startswith("-"))
    return " ".join(words[:2]) if group and not alone else words[0]


def test_the_commands_table_names_every_command_with_all_its_options(
    readme: Any, codes: Codes, options: dict[str, list[str]]
) -> None:
    rows = readme.table("### Commands")
    told = {_command_of(codes(row["command"])[0].split()[1:], options): row for row in rows}
    assert told.keys() == options.keys() - {""}
    for name, row in told.items():
        own = codes(row["its options beside the common ones"])
        common = [] if name in {"init", "uninstall", "demo"} else COMMON
        if name in {"leaks", "install"} or name.startswith(
            ("run ", "import ")
        ):  # where the run is the argument, or none is fixed
            common = [option for option in COMMON if option != "--run"]
        elif name.startswith(("token ", "reviewer ")):  # both belong to the root, whatever the strategy
            common = ["--config", "--root"]
        assert sorted(own + common) == sorted(options[name]), name
    assert options[""] == ["--version"]


def test_every_command_line_in_the_documents_can_be_given(
    documents: dict[str, Any], options: dict[str, list[str]]
) -> None:
    seen = 0
    for document in documents.values():
        lines = [span for span in document.spans() if span.startswith("deskbook ")]
        lines += [
            line for block in document.blocks("sh") for line in block.splitlines() if "deskbook " in line
        ]
        for line in lines:
            _, *words = shlex.split(line)
            name = _command_of(words, options)
            assert name in options, f"{document.name}: {line}"
            given = [word for word in words if word.startswith("--")]
            assert set(given) <= {*options[name], "--help"}, f"{document.name}: {line}"
            seen += 1
    assert seen > 10


def test_every_environment_variable_is_documented_with_what_it_sets(readme: Any, codes: Codes) -> None:
    told = {
        variable: row["same as"]
        for row in readme.table("### Environment variables")
        for variable in codes(row["variable"])
    }
    labels = {variable for _, _, _, variable in _LABELS}
    assert told.keys() == {"DESKBOOK_CONFIG", "DESKBOOK_TOKEN", REVIEWER_TOKEN} | _VARIABLES.keys() | labels
    for variable, key in _VARIABLES.items():
        flag = f"--{key.rpartition('.')[2].replace('_', '-')}" if "level" not in key else "--log-level"
        without_flag = variable in ("DESKBOOK_EXPORT", "DESKBOOK_EMBEDDING")
        assert f"`{flag}`" in told[variable] or without_flag, variable


def test_the_variables_that_the_code_reads_are_all_known_here(root: Path) -> None:
    trees = [ast.parse(path.read_text()) for path in (root / "server").glob("**/*.py")]
    words = {n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    named = {word for word in words if isinstance(word, str) and re.fullmatch(r"DESKBOOK_[A-Z_]+", word)}
    labels = {variable for _, _, _, variable in _LABELS}
    assert named == {"DESKBOOK_CONFIG", "DESKBOOK_TOKEN", REVIEWER_TOKEN} | _VARIABLES.keys() | labels


def test_every_label_is_documented_beside_its_variable(readme: Any, codes: Codes) -> None:
    rows = readme.table("### Labels of a call")
    told = [tuple(codes(row[column])[0] for column in ("`_meta` key", "header", "variable")) for row in rows]
    assert told == [(key, header, variable) for _, key, header, variable in _LABELS]


def test_every_error_code_is_documented_with_whether_to_retry(readme: Any, codes: Codes) -> None:
    told = {codes(row["code"])[0]: row["retry"] for row in readme.table("### Errors")}
    known = {fault.code: "yes" if fault.retryable else "no" for fault in _tree(DeskbookError)}
    unexpected = server_errors.describe(ValueError("unforeseen"))
    assert told == known | {unexpected["code"]: "no"}
    assert not unexpected["retryable"]
    cut_off = _shutting_down(1, stored="unknown").data or {}
    assert f"`{cut_off['code']}`" in readme.text


def test_the_limits_table_says_the_limits_of_the_code(readme: Any) -> None:
    rows = [row["most"] for row in readme.table("### Limits")]
    kibibytes = limits.REASON_BYTES // 1024
    assert rows == [
        f"{limits.TEXT_CHARS:,} characters",
        f"{limits.JSON_TEXT_CHARS:,} bytes of JSON",
        f"{limits.REASON_LEAST_CHARS} to {limits.REASON_CHARS:,} characters, {kibibytes} KiB of JSON",
        f"{limits.ORDER_BYTES // 2**20} MiB of JSON",
        f"{limits.PUBLIC_REASON_BYTES} bytes",
        f"{limits.LEGS}; {limits.POSITIONS:,} rows",
        f"{lessons.MOST_OUTCOMES}",
        f"{limits.NOTE_CHARS:,} characters",
        f"{limits.SHORT_TEXT_CHARS} characters",
        f"{limits.TAGS}, of {limits.TAG_CHARS} characters each",
        f"{symbols.MAX_SYMBOL} characters",
        f"{limits.IDENTIFIER_CHARS} characters",
        f"{limits.QUERY_CHARS:,} characters, the first {terms.MAX_QUERY_TERMS} different terms count",
        f"{limits.SEARCH_LIMIT}, then page on with `cursor`",
        "32,000; 16,000 characters",
        f"{MAX_FRAME_BYTES // 2**20} MiB; {HttpSettings().max_body_bytes // 2**20} MiB",
    ]


def test_the_system_prompt_names_only_what_exists(readme: Any) -> None:
    """P199: the snippet for a host stands in the README, and is checked."""
    (prompt,) = [block for block in readme.blocks("text") if block.startswith("You have a memory")]
    arguments = {name for tool in TOOLS.values() for name in tool.arguments.model_fields}
    named = set(re.findall(r"[a-z]+(?:_[a-z]+)+", prompt))
    assert named - TOOLS.keys() - arguments == set()
    assert {
        "get_memory_state", "search_memory", "remember_decision", "open_thesis", "close_thesis",
        "record_order_intent", "record_order_outcome", "list_unreconciled_orders",
    } <= named  # fmt: skip


def test_no_tool_is_named_that_does_not_exist(documents: dict[str, Any], tmp_path: Path) -> None:
    shape = re.compile(
        r"(?:remember|search|open|update|close|get|resolve|flag|record|report|list|advance|validate)_[a-z_]+"
    )
    book = Book.open(tmp_path, "default")
    sections = book.state(Caller("trader", "trader", "ses_1", "get_memory_state")).body.keys()
    book.close()
    allowed = set(TOOLS) | {action.value for action in Action} | sections
    for document in documents.values():
        named = {span for span in document.spans() if shape.fullmatch(span)}
        assert named <= allowed, document.name
