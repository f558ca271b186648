"""Edits of JSON with comments that leave every other character as it stands.

Adding to an object or array and taking the same away again gives the text back byte for byte. What is taken away
is the entry, its comma, and the space that leads to it; comments around it stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from .endings import newline_of
from .faults import UneditableText
from .syntax import Child, Node, parse

_LEAD: Final = re.compile(r"(?:\r?\n)?[ \t]*\Z")
_REST_OF_LINE: Final = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?(?=[ \t]*\r?\n)")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_UNIT: Final = "  "
_EMPTY: Final = "{}"

Path = Sequence[str]


def read(text: str, path: Path) -> Any:
    """The value at a path of names, or None where nothing stands; raises UnreadableText."""
    value = parse(text).value if text.strip() else {}
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def with_member(text: str, path: Path, name: str, value: object) -> str:
    """The text with `name: value` in the object at `path`; containers that are missing are made.

    A member of that name is replaced where it stands. Raises UnreadableText and UneditableText.
    """
    if not text.strip():
        # Space alone is no JSON; it stays in front of what is made.
        text += _EMPTY + "\n"
    root = parse(text)
    node, missing = _descend(root, path, dict)
    if missing:
        first, *deeper = [*missing, name]
        made = value
        for key in reversed(deeper):
            made = {key: made}
        return _added(text, node, first, made)
    standing = _only(node, name)
    if standing is None:
        return _added(text, node, name, value)
    rendered = _rendered(value, _style(text, node, standing))
    return text[: standing.node.start] + rendered + text[standing.node.end :]


def without_member(text: str, path: Path, name: str) -> str:
    """The text without that member; the object that held it stays, be it empty. Raises as `with_member`."""
    node, missing = _descend(parse(text), path, dict)
    standing = None if missing else _only(node, name)
    return text if standing is None else _removed(text, node, standing)


def with_item(text: str, key: str, item: object) -> str:
    """The text with an item at the end of the list of that name at its top; raises as `with_member`."""
    if not text.strip() or parse(text).value == {}:
        return with_member(text, (), key, [item])
    node, missing = _descend(parse(text), (key,), list)
    return with_member(text, (), key, [item]) if missing else _added(text, node, None, item)


def without_item(text: str, key: str, item: object) -> str:
    """The text without every item of that list that is equal to `item`; raises as `with_member`."""
    while True:
        node, missing = _descend(parse(text), (key,), list)
        found = None if missing else next((c for c in node.children if c.node.value == item), None)
        if found is None:
            return text
        text = _removed(text, node, found)


def _descend(node: Node, path: Path, kind: type) -> tuple[Node, list[str]]:
    """The deepest node on the path, and the names from there on that are missing."""
    names = list(path)
    told = "the top"
    while names:
        if not isinstance(node.value, dict):
            raise UneditableText(f"{told} is not an object")
        child = _only(node, names[0])
        if child is None:
            return node, names
        told, node = f'"{names.pop(0)}"', child.node
    if not isinstance(node.value, kind):
        raise UneditableText(f"{told} is not {'an object' if kind is dict else 'a list'}")
    return node, names


def _only(node: Node, key: str) -> Child | None:
    if node.count(key) > 1:
        raise UneditableText(f'"{key}" stands twice in one object')
    return node.member(key)


def _added(text: str, node: Node, key: str | None, value: object) -> str:
    """The text with one more child at the end of a node."""
    newline = newline_of(text)
    if not node.children:
        return _first_added(text, node, key, value, newline)
    last = node.children[-1]
    inline = _lead(text, node, 0).find("\n") < 0
    indent = None if inline else _indent_at(text, last.start)
    lead = " " if indent is None else newline + indent
    entry = _child(key, value, None if indent is None else (indent, _unit(text), newline))
    end = last.node.end if last.comma is None else last.comma + 1
    rest = None if inline else _REST_OF_LINE.match(text, end, node.end - 1)
    # A comment on the last child's line stays on that line.
    place = rest.end() if rest else end
    before, after = (",", "") if last.comma is None else ("", ",")
    return f"{text[:end]}{before}{text[end:place]}{lead}{entry}{after}{text[place:]}"


def _first_added(text: str, node: Node, key: str | None, value: object, newline: str) -> str:
    """The text with a child in a node that is empty; what stands in it stays in front of the child."""
    outer = _line_indent(text, node.start)
    indent = outer + _unit(text)
    entry = _child(key, value, (indent, _unit(text), newline))
    close = node.end - 1
    return f"{text[:close]}{newline}{indent}{entry}{newline}{outer}{text[close:]}"


def _removed(text: str, node: Node, child: Child) -> str:
    """The text without one child: the opposite of `_added`."""
    position = next(number for number, one in enumerate(node.children) if one is child)
    lead = _lead_start(text, child.start)
    end, close = child.node.end, node.end - 1
    if len(node.children) == 1:
        comma = end if child.comma is None else child.comma
        after = text[end:comma] + text[comma if child.comma is None else comma + 1 : close]
        # The line break before the closing bracket came with the first child, where that has a line of its own.
        own = "\n" in text[lead : child.start] and re.fullmatch(r"\r?\n[ \t]*", after)
        return _joined(
            text[:lead], node.start + 1, text[lead : child.start], ("" if own else after) + text[close:]
        )
    before = node.children[position - 1].comma if position else node.start
    if before is None:
        raise UneditableText("a comma is missing")
    if child.comma is not None:
        after = text[end : child.comma] + text[child.comma + 1 :]
        return _joined(text[:lead], before + 1, text[lead : child.start], after)
    # The last child without a comma of its own takes the comma before it along.
    kept = text[:before] + text[before + 1 : lead]
    return _joined(kept, before, text[lead : child.start], text[end:])


def _joined(kept: str, gap: int, lead: str, after: str) -> str:
    """What stays, put together; a line comment at the end of what is kept (from `gap` on) stays on its line."""
    comments = list(_COMMENT.finditer(kept, gap))
    open_ended = bool(comments) and comments[-1].end() == len(kept) and comments[-1][0].startswith("//")
    return kept + (lead if open_ended and not after.startswith(("\n", "\r")) else "") + after


def _lead_start(text: str, at: int) -> int:
    found = _LEAD.search(text, max(0, text.rfind("\n", 0, at) - 1), at)
    return found.start() if found else at


def _lead(text: str, node: Node, position: int) -> str:
    return text[node.start + 1 : node.children[position].start]


def _indent_at(text: str, at: int) -> str:
    """The space between the start of a line and what stands at `at`, when nothing else stands before it."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip(" \t") else _line_indent(text, at)


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of the file's indentation: that of the first line that has any."""
    found = re.search(r"\n([ \t]+)[\"\]}\[{]", text)
    return found[1] if found else _UNIT


_Style = tuple[str, str, str]
"""Indent of the line, one step of indentation, line ending."""


def _style(text: str, node: Node, child: Child) -> _Style | None:
    if "\n" not in _lead(text, node, 0):
        return None
    return _indent_at(text, child.start), _unit(text), newline_of(text)


def _child(key: str | None, value: object, style: _Style | None) -> str:
    rendered = _rendered(value, style)
    return rendered if key is None else f"{_scalar(key)}: {rendered}"


def _rendered(value: object, style: _Style | None) -> str:
    """JSON of a value: objects over several lines unless `style` is None, lists of plain values on one."""
    if style is None:
        return json.dumps(value, ensure_ascii=False)
    indent, unit, newline = style
    deeper = (indent + unit, unit, newline)
    if isinstance(value, dict) and value:
        lines = [f"{deeper[0]}{_scalar(key)}: {_rendered(below, deeper)}" for key, below in value.items()]
        return f"{{{newline}{(',' + newline).join(lines)}{newline}{indent}}}"
    if isinstance(value, list) and any(isinstance(below, dict) for below in value):
        lines = [f"{deeper[0]}{_rendered(below, deeper)}" for below in value]
        return f"[{newline}{(',' + newline).join(lines)}{newline}{indent}]"
    return _scalar(value)


def _scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
