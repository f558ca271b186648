"""What a person is shown of a memory before deciding: all of it, quoted, and all that speaks against it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any, Final

from store import Book
from store.clock import format_age, format_instant
from store.errors import NotFound
from store.explain import GONE
from store.review.items import FlagItem, ReviewItem
from store.rows import Flag, Version

from .screen import one_line, plain, timed
from .wording import counted

HASH_DIGITS: Final = 12
QUOTE: Final = "  | "
ALIKE: Final = {"near_repeat": "says nearly the same as"}
_TOLD_APART: Final = frozenset({"alike", "masked", "suspicious", "pending_until", "notices"})


def short_hash(item: ReviewItem) -> str:
    """The digits of the content hash by which a decision names the wording that was shown."""
    return item.shown_sha256[:HASH_DIGITS]


def item_line(item: ReviewItem) -> str:
    """A memory on one line: id, hash, kind, instrument, author, age and how its text begins."""
    text = item.version.text
    return _line(item, f'"{one_line(text, 60)}"' if text else GONE)


def _line(item: ReviewItem, *more: str) -> str:
    version = item.version
    parts = [
        one_line(version.memory_id),
        short_hash(item),
        one_line(version.kind),
        one_line(version.symbol or "-"),
        one_line(version.agent),
        format_age(item.at - version.created_at),
        *more,
        *(["SUSPICIOUS"] if version.details.get("suspicious") else ()),
    ]
    return "  ".join(parts)


def item_lines(book: Book, item: ReviewItem, zone: tzinfo | None) -> list[str]:
    """A memory whole, for a terminal: nothing in it can drive one."""
    version = item.version
    waiting = "" if version.review_state == "none" else f", {version.review_state}"
    told: dict[str, str] = {
        "hash": short_hash(item),
        "author": f"{version.agent} (profile {version.profile})",
        "written": f"{_time(version.created_at, zone)}, {format_age(item.at - version.created_at)} ago, "
        f"version {version.version}",
    }
    if version.changed_by != version.agent:
        told["changed by"] = version.changed_by
    told |= _dates(item, zone)
    if version.tags:
        told["tags"] = ", ".join(version.tags)
    for name, value in timed(version.details, zone).items():
        if name not in _TOLD_APART and value not in (None, [], {}):
            told[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    head = "  ".join((version.memory_id, version.kind, version.symbol or "-", version.status + waiting))
    return [
        one_line(head, 300),
        *(f"  {name:<12} {one_line(value, 2_000)}" for name, value in told.items()),
        *_rejected(item, zone),
        *_warnings(book, item),
        *_words(item),
    ]


def item_record(item: ReviewItem) -> dict[str, Any]:
    """A memory as JSON values for programs, times as ISO 8601 in UTC."""
    version = item.version
    return {
        "id": version.memory_id,
        "hash": short_hash(item),
        "shown_sha256": item.shown_sha256,
        "kind": version.kind,
        "status": version.status,
        "review_state": version.review_state,
        "version": version.version,
        "symbol": version.symbol,
        "agent": version.agent,
        "profile": version.profile,
        "changed_by": version.changed_by,
        "created_at": format_instant(version.created_at),
        "age": format_age(item.at - version.created_at),
        "review_by": _told_time(version.stale_at),
        "expires_at": _told_time(version.expires_at),
        "tags": list(version.tags),
        "details": timed(version.details, None),
        "flags": [_flag_record(flag) for flag in item.flags],
        "rejected_before": [_rejection(other, None) for other in item.rejected],
        "text": version.text,
        "stands": item.stands,
    }


def flag_lines(book: Book, found: FlagItem, zone: tzinfo | None) -> list[str]:
    """An open flag with the memories it is about, each on a line of its own and quoted."""
    flag = found.flag
    lines = [
        one_line(f"{found.event_id}  {flag.reason}  by {flag.agent} at {_time(flag.effective_at, zone)}", 300)
    ]
    if flag.note:
        lines.append(f"  note         {one_line(flag.note, 500)}")
    for item in (found.memory, found.other):
        if item is not None:
            lines += [f"  {_line(item)}", *_words(item)]
    return lines


def flag_record(found: FlagItem) -> dict[str, Any]:
    """An open flag as JSON values for programs."""
    other = None if found.other is None else item_record(found.other)
    return {
        "event_id": found.event_id,
        **_flag_record(found.flag),
        "memory": item_record(found.memory),
        "other": other,
    }


def quoted(text: str) -> list[str]:
    """A text line by line behind a mark, so that none of it can pass for ours; of one taken away, that it was."""
    return [QUOTE + line for line in plain(text or GONE).replace("\t", " ").split("\n")]


def _words(item: ReviewItem) -> list[str]:
    """The text of a memory, and beside a new wording that waits the one that stands."""
    words = quoted(item.version.text)
    return words if item.stands is None else ["  waits:", *words, "  stands now:", *quoted(item.stands)]


def _dates(item: ReviewItem, zone: tzinfo | None) -> Iterator[tuple[str, str]]:
    version = item.version
    for name, at, past in (
        ("review by", version.stale_at, "past"),
        ("expires", version.expires_at, "expired"),
        ("waits until", version.details.get("pending_until"), "waited too long"),
    ):
        if isinstance(at, int):
            yield name, _time(at, zone) + (f" ({past})" if at <= item.at else "")


def _rejected(item: ReviewItem, zone: tzinfo | None) -> Iterator[str]:
    """That its author has said it before in the same words and was told no."""
    if item.rejected:
        last = _rejection(item.rejected[0], zone)
        times = counted(len(item.rejected), "time", "times")
        said = f"in the same words {times} before, last {last['id']} by {last['by']} at {last['at']}"
        yield "  REJECTED     " + one_line(f"{said}: {last['reason']}", 600)


def _rejection(version: Version, zone: tzinfo | None) -> dict[str, Any]:
    details = timed(version.details, zone)
    return {
        "id": version.memory_id,
        "by": details.get("reviewed_by"),
        "at": details.get("reviewed_at"),
        "reason": details.get("review_reason"),
    }


def _warnings(book: Book, item: ReviewItem) -> Iterator[str]:
    """What should make a person look twice."""
    details = item.version.details
    if masked := details.get("masked"):
        yield f"  MASKED       what seemed to be a secret, in {one_line(', '.join(map(str, masked)))}"
    if suspicious := details.get("suspicious"):
        yield f"  SUSPICIOUS   it reads like an instruction: {one_line(', '.join(map(str, suspicious)), 300)}"
    for other in details.get("alike") or ():
        said = ALIKE.get(other["why"], f"may contradict ({other['why']})")
        yield "  ALIKE        " + one_line(f"{said} {other['id']}", 200)
        yield from _quote_of(book, other["id"], item.at)
    for flag in item.flags:
        named = f" with {flag.other_id}" if flag.other_id else ""
        note = f": {flag.note}" if flag.note else ""
        yield f"  FLAGGED      {one_line(f'{flag.reason}{named} by {flag.agent}{note}', 600)}"
        if flag.other_id:
            yield from _quote_of(book, flag.other_id, item.at)


def _quote_of(book: Book, memory_id: str, at: int) -> Iterator[str]:
    try:
        other = book.review_item(memory_id, at)
    except NotFound:
        return
    for line in quoted(other.version.text):
        yield f"             {line.strip()}"


def _flag_record(flag: Flag) -> dict[str, Any]:
    return {
        "reason": flag.reason,
        "other_id": flag.other_id,
        "note": flag.note,
        "by": flag.agent,
        "at": format_instant(flag.effective_at),
    }


def _time(us: int, zone: tzinfo | None) -> str:
    return format_instant(us, zone)


def _told_time(us: int | None) -> str | None:
    return None if us is None else format_instant(us)
