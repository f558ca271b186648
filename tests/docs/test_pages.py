"""The pages under docs say what the code does: configuration, events, ledger, architecture; and links resolve."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from server import sections
from store import answers, book, events, limits, order_outcomes, readings
from store.audit import MOST_FINDINGS
from store.audit_mark import TABLES as MADE_FROM_ENTRIES
from store.canonical import ZERO_CHAIN, canonical, chain_hash, content_hash
from store.engines.sqlite import writer
from store.entry import COLUMNS, SCHEMA_VERSION, UNHASHED, Entry, leaf_of
from store.event_parts import Covered
from store.events import Event
from store.lifecycle import KINDS, ORDER_ACTION, ORDER_STATUSES, ORDER_STEPS, STEPS
from store.projection import Before, project
from store.rows import Version

Codes = Callable[[str], list[str]]

TABLES = {
    "store": sections.StoreSettings,
    "clock": sections.ClockSettings,
    "agents.NAME": sections.AgentSettings,
    "agents.NAME.clock": sections.AgentClock,
    "profiles.NAME": sections.ProfileSettings,
    "limits": sections.LimitSettings,
    "log": sections.LogSettings,
    "desk": sections.DeskSettings,
    "symbols": sections.SymbolSettings,
    "http": sections.HttpSettings,
    "export": sections.ExportSettings,
    "embedding": sections.EmbeddingSettings,
    "ranking": sections.RankingSettings,
    "approval": sections.ApprovalSettings,
    "approval.profiles.NAME": sections.GateSettings,
    "review": sections.ReviewSettings,
    "review.expires": sections.AgeSettings,
    "screening": sections.ScreeningSettings,
    "publish": sections.PublishSettings,
    "checkpoint": sections.CheckpointSettings,
    "retention": sections.RetentionSettings,
}
# The default as a reader writes it, where the field holds something else.
WRITTEN = {
    "store.root": "the platform's",
    "log.level": '`"info"`',
    "retention.keep": '`"forever"`',
    "approval.pending_lasts": '`"30d"`',
    **{f"approval.{kind}": '`"auto"`' for kind in KINDS},
}


def _default(key: str, field: FieldInfo) -> str:
    if key in WRITTEN:
        return WRITTEN[key]
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, bool | int | float | str):
        return f"`{json.dumps(value)}`"
    return "`[]`" if isinstance(value, tuple) else "`{}`"


def test_every_section_of_the_config_has_its_table() -> None:
    named = {name.partition(".")[0] for name in TABLES}
    assert named == sections.Sections.model_fields.keys()
    models = {m for m in vars(sections).values() if isinstance(m, type) and issubclass(m, sections.Section)}
    assert models - {sections.Section, sections.Sections} == set(TABLES.values())


@pytest.mark.parametrize("section", TABLES)
def test_every_key_is_documented_with_its_default_and_range(
    section: str, documents: dict[str, Any], codes: Codes
) -> None:
    rows = documents["docs/configuration.md"].table(f"## `[{section}]`")
    told = {codes(row["key"])[0]: (row["default"], row["allowed"]) for row in rows}
    fields = TABLES[section].model_fields
    assert told == {
        name: (_default(f"{section}.{name}", field), field.description or "a table")
        for name, field in fields.items()
    }
    assert list(told) == list(fields)
    assert all(row["meaning"] for row in rows)


def test_the_readme_lists_the_same_keys_by_section(readme: Any, codes: Codes) -> None:
    listed: dict[str, list[str]] = {}
    for row in readme.table("### Configuration"):
        for section in codes(row["section"]):
            listed[section.strip("[]")] = codes(row["keys"])
    assert listed.keys() == TABLES.keys() - {"agents.NAME.clock"}
    for section, keys in listed.items():
        assert keys in ([], list(TABLES[section].model_fields)), section


def test_no_key_is_said_to_have_no_effect(documents: dict[str, Any], codes: Codes) -> None:
    page = documents["docs/configuration.md"]
    idle = [
        codes(row["key"])[0]
        for section in TABLES
        for row in page.table(f"## `[{section}]`")
        if re.search(r"No effect yet|Not enforced yet|Not applied yet", row["meaning"])
    ]
    assert idle == []
    whole = [
        section for section in TABLES if f"## `[{section}]`\n\nChecked, without effect yet." in page.text
    ]
    assert whole == []


def test_the_events_page_lists_every_type_with_its_content(documents: dict[str, Any], codes: Codes) -> None:
    rows = documents["docs/events.md"].table("# Events")
    kinds = _event_kinds()
    assert [codes(row["event type"])[0] for row in rows] == list(kinds)
    for row, kind in zip(rows, kinds.values(), strict=True):
        fields = {name: field for name, field in kind.model_fields.items() if name != "type"}
        told = [f"`{name}`{'' if _always(field) else '?'}" for name, field in fields.items()]
        assert row["content"] == ", ".join(told), kind
        assert row["meaning"] == (kind.__doc__ or "").splitlines()[0], kind


def test_the_events_page_names_the_projection_of_every_type(documents: dict[str, Any], codes: Codes) -> None:
    told = {
        codes(row["event type"])[0]: row["projection"]
        for row in documents["docs/events.md"].table("# Events")
    }
    tables: dict[type, str] = {**MADE_FROM_ENTRIES}
    for name, kind in _event_kinds().items():
        given = {n: _example(f) for n, f in kind.model_fields.items() if f.is_required()}
        if "touches" in kind.model_fields:
            given["touches"] = ("AAPL",)
        if "covered" in kind.model_fields:
            given["covered"] = (Covered(sequence=1, event_type="x", content_sha256="", kept={}),)
        event = kind.model_validate(given)
        rows = project(_entry(event_type=name), event, Before(_version(), 1, 1))
        assert told[name] == (", ".join(f"`{tables[type(row)]}`" for row in rows) or "none"), name


def test_the_events_page_says_how_many_candidates_are_kept(documents: dict[str, Any]) -> None:
    assert f"the best {limits.CANDIDATES_KEPT} " in documents["docs/events.md"].text


def test_the_orders_page_shows_every_step_of_actions_and_orders(
    documents: dict[str, Any], codes: Codes
) -> None:
    rows = documents["docs/orders.md"].table("## The order journal")
    assert tuple(codes(row["certainty"])[0] for row in rows) == order_outcomes.CERTAINTIES
    for row in rows:
        (certainty,) = codes(row["certainty"])
        of_order = certainty in ORDER_STATUSES
        assert row["about"] == ("the order" if of_order else "the action")
        steps = ORDER_STEPS if of_order else STEPS[ORDER_ACTION]
        assert codes(row["may follow"]) == [s for s, after in steps.items() if certainty in after], certainty
        if of_order:
            assert ("Final." in row["meaning"]) == (certainty not in ORDER_STEPS), certainty


def test_the_orders_page_names_every_warning(documents: dict[str, Any], codes: Codes) -> None:
    rows = documents["docs/orders.md"].table("## Warnings")
    known = set(get_args(events.Warned.model_fields["code"].annotation))
    assert {codes(row["code"])[0] for row in rows} == known
    assert all(f"`{code}`" in documents["docs/events.md"].text for code in known)


def test_the_ledger_page_lists_every_column(documents: dict[str, Any], codes: Codes) -> None:
    page = documents["docs/ledger.md"]
    assert [codes(row["column"]) for row in page.table("## Columns")] == [[column] for column in COLUMNS]
    kind = next(row["meaning"] for row in page.table("## Columns") if "`kind`" in row["column"])
    assert tuple(codes(kind)) == KINDS
    _, formula, _ = page.text.partition("canonical JSON of every column but ")
    assert formula
    named = page.text.partition("canonical JSON of every column but ")[2].partition(")")[0]
    assert set(named.split(", ")) == UNHASHED
    assert f"at most {MOST_FINDINGS} findings" in page.text


def test_the_worked_vector_is_what_the_store_computes(documents: dict[str, Any]) -> None:
    (block,) = documents["docs/ledger.md"].blocks("json")
    chain = ZERO_CHAIN
    for told in json.loads(block):
        columns = {
            n: bytes.fromhex(v) if n.endswith(("_salt", "_sha256")) and v else v for n, v in told.items()
        }
        entry = Entry(**columns)
        assert tuple(columns) == COLUMNS
        assert entry.schema_version == SCHEMA_VERSION
        assert entry.content == canonical(json.loads(entry.content)).decode()
        assert events.read_event(entry.event_type, json.loads(entry.content)).to_content() == entry.content
        assert entry.content_sha256 == content_hash(entry.content_salt, entry.content.encode())
        assert entry.leaf_sha256 == leaf_of(entry)
        chain = chain_hash(chain, entry.leaf_sha256)
        assert entry.chain_sha256 == chain


def test_the_architecture_page_names_only_what_is_there(
    documents: dict[str, Any], codes: Codes, root: Path
) -> None:
    rows = documents["docs/architecture.md"].table("## What happens where")
    named = [path for row in rows for path in codes(row["place"])]
    assert [path for path in named if not (root / path).exists()] == []
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("docs/architecture.md", f"waits, {book.WRITE_SECONDS:g} s at most"),
        ("docs/architecture.md", f"up to {writer.MAX_BATCH},"),
        ("docs/architecture.md", f"within {readings.DELIVERY_SECONDS * 1000:g} ms"),
        ("docs/orders.md", f"at least {limits.REASON_LEAST_CHARS} characters from an agent"),
        (
            "docs/orders.md",
            f"at most {limits.REASON_CHARS:,} characters and {limits.REASON_BYTES // 1024} KiB",
        ),
        ("docs/orders.md", f"take at most {limits.ORDER_BYTES // 2**20} MiB"),
        ("docs/orders.md", f"(the first {answers.REASON_PREVIEW} characters)"),
        ("docs/security.md", f"at most {limits.PUBLIC_REASON_BYTES} bytes"),
        ("README.md", f"waits up to {book.WRITE_SECONDS:g} s (`store_busy`)"),
        ("README.md", f"a search up to {readings.SEARCH_SECONDS:g} s (`not_recorded`)"),
        ("README.md", f"At most {sections.LimitSettings().state_chars:,} characters whatever is stored"),
        ("README.md", f"{sections.LimitSettings().reply_chars:,}; {sections.LimitSettings().state_chars:,}"),
    ],
)
def test_a_number_in_the_text_is_the_number_in_the_code(
    page: str, words: str, documents: dict[str, Any]
) -> None:
    assert words in " ".join(documents[page].text.split())


def test_links_inside_the_repository_resolve(documents: dict[str, Any]) -> None:
    anchors = {document.path: _anchors(document.text) for document in documents.values()}
    broken = []
    for document in documents.values():
        for link in re.findall(r"\]\(([^)\s]+)\)", document.prose):
            if re.match(r"https?://", link):
                continue
            place, _, anchor = link.partition("#")
            target = (document.path.parent / place).resolve() if place else document.path
            if not target.exists() or (anchor and anchor not in anchors.get(target, set())):
                broken.append(f"{document.name}: {link}")
    assert broken == []


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _event_kinds() -> dict[str, type[Event]]:
    found: dict[str, type[Event]] = {
        kind.model_fields["type"].default: kind for kind in get_args(get_args(events.AnyEvent)[0])
    }
    assert tuple(found) == events.event_types()
    return found


def _always(field: FieldInfo) -> bool:
    """Whether the stored content always holds the field: fields that are None are left out."""
    return field.is_required() or field.default is not None


def _example(field: FieldInfo) -> Any:
    """A value that the field takes."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if kind in {str, int}:
        return {str: "x", int: 1}[kind]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: _example(part) for name, part in kind.model_fields.items() if part.is_required()}
    return {} if get_origin(kind) is dict else ()


def _entry(**named: Any) -> Entry:
    columns = dict.fromkeys(COLUMNS) | {"sequence": 2, "subject_id": "x", "kind": KINDS[0], "agent": "trader"}
    return Entry(**{**columns, "effective_at": 1, **named})


def _version() -> Version:
    texts = ("memory_id", "kind", "status", "review_state", "text", "agent", "profile", "changed_by")
    numbers = ("sequence_from", "version", "ordinal", "terms_total", "created_at", "effective_at", "terms")
    absent = ("symbol", "stale_at", "expires_at")
    values: dict[str, Any] = dict.fromkeys(texts, "x") | dict.fromkeys(numbers, 1) | dict.fromkeys(absent)
    return Version(**values, tags=(), details={})
