"""JSON with comments and trailing commas, read into nodes that know where they stand in the text.

Written here and not taken from a library: what edits such a file must leave every other character alone, and the
libraries at hand re-render, accept far more than the hosts do (JSON5), or start a JavaScript runtime.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from .faults import UnreadableText

_GAP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}
_STRINGS: Final = json.JSONDecoder()
_DEEPEST: Final = 200
_MOST_DIGITS: Final = 4_000


@dataclass(slots=True)
class Child:
    """One member or item: `start` is where its key (or value) begins, `comma` the comma after it."""

    start: int
    key: str | None
    node: Node
    comma: int | None = None


@dataclass(slots=True)
class Node:
    """One value: `start` to `end` in the text, and the members or items of an object or array."""

    start: int
    end: int
    value: Any
    children: list[Child] = field(default_factory=list)

    def member(self, key: str) -> Child | None:
        """The member of that key, the last where it stands twice, as every reader takes it."""
        return next((child for child in reversed(self.children) if child.key == key), None)

    def count(self, key: str) -> int:
        """How often the key stands in the object."""
        return sum(child.key == key for child in self.children)


def parse(text: str) -> Node:
    """Read the one value of a text; raises UnreadableText."""
    reader = _Reader(text)
    start = reader.gap(0)
    node = reader.value(start, 0)
    end = reader.gap(node.end)
    if end != len(text):
        raise reader.fault("something follows after the end", end)
    return node


class _Reader:
    """A recursive descent over one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def gap(self, at: int) -> int:
        """The end of the space and comments that begin at `at`."""
        found = _GAP.match(self.text, at)
        end = found.end() if found else at
        if self.text.startswith("/*", end):
            raise self.fault("a comment is not closed", end)
        return end

    def fault(self, reason: str, at: int) -> UnreadableText:
        line = self.text.count("\n", 0, at) + 1
        return UnreadableText(reason, line, at - self.text.rfind("\n", 0, at))

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.fault("it is nested too deeply", at)
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first == '"':
            told, end = self._string(at)
            return Node(at, end, told)
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, at):
                return Node(at, at + len(word), meaning)
        found = _NUMBER.match(self.text, at)
        if found is None or len(found[0]) > _MOST_DIGITS:
            raise self.fault("a value is missing" if found is None else "a number is too long", at)
        return Node(at, found.end(), json.loads(found[0]))

    def _string(self, at: int) -> tuple[str, int]:
        try:
            told, end = _STRINGS.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            raise self.fault(error.msg[:1].lower() + error.msg[1:], error.pos) from None
        return str(told), end

    def _object(self, at: int, depth: int) -> Node:
        node = Node(at, at, {})
        at = self.gap(at + 1)
        while not self.text.startswith("}", at):
            if not self.text.startswith('"', at):
                raise self.fault("a name in double quotes is missing", at)
            key, end = self._string(at)
            colon = self.gap(end)
            if not self.text.startswith(":", colon):
                raise self.fault("a colon is missing", colon)
            child = Child(at, key, self.value(self.gap(colon + 1), depth + 1))
            node.children.append(child)
            node.value[key] = child.node.value
            at = self._after(child, "}")
        node.end = at + 1
        return node

    def _array(self, at: int, depth: int) -> Node:
        node = Node(at, at, [])
        at = self.gap(at + 1)
        while not self.text.startswith("]", at):
            child = Child(at, None, self.value(at, depth + 1))
            node.children.append(child)
            node.value.append(child.node.value)
            at = self._after(child, "]")
        node.end = at + 1
        return node

    def _after(self, child: Child, closing: str) -> int:
        """Where the next member or the closing bracket stands."""
        at = self.gap(child.node.end)
        if self.text.startswith(",", at):
            child.comma = at
            return self.gap(at + 1)
        if not self.text.startswith(closing, at):
            raise self.fault(f"a comma or {closing} is missing", at)
        return at
