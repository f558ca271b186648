"""What doctor says of its own options, and the commands in what it says: complete, and for the same desk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.tokens import new_token, token_path
from server.typed import with_place

if TYPE_CHECKING:
    from conftest import Doctor, Words

PLACE = ["--config", "/my desk.toml", "--root", "/r"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cursor", "--config", "x"), "Leave --config away: the entry of HOST names its own."),
        (("cursor", "--agent", "x"), "Leave --agent away: the entry of HOST names its own."),
        (
            ("--url", "http://127.0.0.1:1/mcp", "--root", "x"),
            "Leave --root away: --url names a running server.",
        ),
        (("--scope", "user"), "Name a host too, such as `deskbook doctor cursor`."),
        (("--url", "localhost:8765/mcp"), "Write http:// in front: --url http://localhost:8765/mcp"),
    ],
)
def test_an_option_too_many_is_told_with_what_to_do(
    doctor: Doctor, words: tuple[str, ...], said: str
) -> None:
    told = doctor(*words)
    assert (told.code, told.out) == (2, "")
    assert said in " ".join(told.err.split())


def test_the_help_says_which_options_go_together(deskbook: Words) -> None:
    told = " ".join(deskbook("doctor", "--help", COLUMNS="200").stdout.split())
    for option in ("--name", "--scope", "--file"):
        assert "With HOST: " in told.partition(f" {option} ")[2][:60], option
    for option in ("--config", "--agent", "--root", "--strategy", "--run"):
        assert "A desk: " in told.rpartition(f" {option} ")[2][:60], option


def test_what_to_do_is_a_command_for_the_same_desk(doctor: Doctor, desk: Path, root: Path) -> None:
    told = doctor("--config", str(desk))
    (tokens,) = told.of("tokens")
    for agent in ("researcher", "trader"):
        assert f"`deskbook token new {agent} --config {desk}`" in tokens["next"]
    other = root.with_name("other")
    new_token(token_path(other), "trader")
    (_, without) = doctor("--config", str(desk), "--root", str(other)).of("tokens")
    assert f"`deskbook token new researcher --config {desk} --root {other}`" in without["next"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`deskbook token list` says", "`deskbook token list --config '/my desk.toml' --root /r` says"),
        ("`deskbook doctor --config FILE`", "`deskbook doctor --config FILE --root /r`"),
        ("`deskbook doctor cursor`, `deskbook demo`", "`deskbook doctor cursor`, `deskbook demo`"),
        ("`deskbook init` and `openssl rand`", "`deskbook init` and `openssl rand`"),
    ],
)
def test_a_command_is_completed_where_it_takes_the_place(text: str, wanted: str) -> None:
    assert with_place(text, PLACE) == wanted
    assert with_place(text, []) == text
