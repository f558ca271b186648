"""Edits of TOML that leave every other character as it stands.

A table of its own goes to the end of the text and is cut out again by its lines. Where an entry stands in another
form (inline, or by dotted keys), tomlkit edits it. Either way the result is read back and must hold what was there
before and the change, and nothing else.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .endings import newline_of
from .faults import UneditableText, UnreadableText

_HEADER: Final = re.compile(r"[ \t]*\[(?!\[)([^\]\r\n]*)\][ \t]*(?:#[^\r\n]*)?\r?\n?\Z")
_WHERE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")

Path = Sequence[str]
Tables = dict[str, Any]


def read(text: str, path: Path) -> Any:
    """The value at a path of names, or None where nothing stands; raises UnreadableText."""
    value: Any = _parsed(text)
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def with_table(text: str, path: Path, name: str, entry: Mapping[str, object]) -> str:
    """The text with the table `path.name`, which replaces one of that name where it stands.

    Raises UnreadableText, and UneditableText where the table would not fit into the text.
    """
    before = _parsed(text)
    wanted = _changed(before, path, name, dict(entry))
    block = _block((*path, name), entry, newline_of(text))
    blocks = _blocks(text, (*path, name))
    if blocks:
        first = blocks[0][0]
        candidate = _cut(text, blocks)
        candidate = candidate[:first] + block + candidate[first:]
    else:
        candidate = _appended(text, block, newline_of(text))
    if _holds(candidate, wanted):
        return candidate
    return _by_tomlkit(text, path, name, dict(entry), wanted)


def without_table(text: str, path: Path, name: str) -> str:
    """The text without that table and what is below it; raises as `with_table`."""
    before = _parsed(text)
    if read(text, (*path, name)) is None:
        return text
    wanted = _changed(before, path, name, None)
    blocks = _blocks(text, (*path, name))
    if blocks:
        candidate = _cut(text, [(_blank_before(text, start), end) for start, end in blocks])
        if candidate and not text.endswith("\n"):
            candidate = re.sub(r"\r?\n\Z", "", candidate)
        if _holds(candidate, wanted):
            return candidate
    return _by_tomlkit(text, path, name, None, wanted)


def _parsed(text: str) -> Tables:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        found = _WHERE.search(told)
        reason = told[: found.start()] if found else told
        last = text.count("\n") + 1
        line, column = (found[1] or last, found[2] or 0) if found else (0, 0)
        raise UnreadableText(reason[:1].lower() + reason[1:], int(line), int(column)) from None
    except RecursionError:
        raise UnreadableText("it is nested too deeply", 0, 0) from None


def _changed(tables: Tables, path: Path, name: str, entry: Tables | None) -> Tables:
    """The tables with the entry set or, as None, taken away; a table that is left empty counts as absent."""
    below: Any = tables.get(path[0], {})
    if not isinstance(below, dict):
        raise UneditableText(f'"{path[0]}" is not a table')
    if len(path) > 1:
        changed = _changed(below, path[1:], name, entry)
    else:
        changed = {key: value for key, value in below.items() if key != name}
        if entry is not None:
            changed[name] = entry
    return tables | {path[0]: changed}


def _holds(text: str, wanted: Tables) -> bool:
    try:
        return _without_empty(tomllib.loads(text)) == _without_empty(wanted)
    except tomllib.TOMLDecodeError:
        return False


def _without_empty(tables: Tables) -> Tables:
    return {key: value for key, value in tables.items() if value != {}}


def _by_tomlkit(text: str, path: Path, name: str, entry: Tables | None, wanted: Tables) -> str:
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for key in path:
            table = table[key]
        if entry is None:
            del table[name]
        else:
            made = tomlkit.inline_table()
            made.update(entry)
            table[name] = made
        candidate = tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise UneditableText(f"its tables leave no safe place for the change ({error})") from None
    if not _holds(candidate, wanted) or _comments(text) - _comments(candidate):
        raise UneditableText("its tables leave no safe place for the change")
    return candidate


def _comments(text: str) -> Counter[str]:
    return Counter(line.strip() for line in text.splitlines() if line.lstrip().startswith("#"))


def _block(path: Path, entry: Mapping[str, object], newline: str) -> str:
    lines = [f"[{'.'.join(_key(name) for name in path)}]"]
    lines += [f"{_key(name)} = {tomlkit.item(value).as_string()}" for name, value in entry.items()]
    return newline.join(lines) + newline


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else tomlkit.item(name).as_string()


def _appended(text: str, block: str, newline: str) -> str:
    if not text:
        return block
    if text.endswith("\n"):
        return text + newline + block
    return text + newline + newline + block.removesuffix(newline)


def _blocks(text: str, path: Path) -> list[tuple[int, int]]:
    """Where the table and those below it stand: from a header to its last line that is no comment or space."""
    spans: list[tuple[int, int]] = []
    inside = False
    at = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        end = at + len(line)
        found = _HEADER.match(line)
        own = found is not None and _names(found[1])[: len(path)] == list(path)
        if (own or (inside and line.lstrip().startswith("["))) and _stands_alone(text[:at]):
            inside = own
            if own:
                spans.append((at, end))
        elif inside and line.strip() and not line.lstrip().startswith("#"):
            spans[-1] = (spans[-1][0], end)
        at = end
    return spans


def _stands_alone(before: str) -> bool:
    """Say whether what follows is a line of its own, and not of a string or list over several lines."""
    try:
        tomllib.loads(before)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _names(header: str) -> list[str]:
    """The names in a table's header; empty where it is none."""
    try:
        below: Any = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while below:
        ((name, below),) = below.items()
        names.append(name)
    return names


def _blank_before(text: str, start: int) -> int:
    """Where the one blank line before a table begins, else where the table begins."""
    found = re.search(r"(?:(?<=\n)|\A)\r?\n\Z", text[:start])
    return found.start() if found else start


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text
