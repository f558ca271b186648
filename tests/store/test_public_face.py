"""What other code may rely on: the names of the store, how a book is called, and the tree of errors."""

from __future__ import annotations

import inspect
import re

import store
from store import Book, errors
from store.caller import Caller
from store.replies import SearchRequest
from store.rows import Filter

BOOK = {
    "open": "root strategy run *create *begins *inherit *durability *clock *zone *symbols *encoder *ranking *policy "
    "*product",
    "execute": "caller command *idempotency_key",
    "answer": "written",
    "search": "caller request",
    "get": "caller memory_id as_of *kind",
    "state": "caller as_of *state_chars",
    "note_denied": "caller tool count",
    "note_failed": "caller tool code field count",
    "explain": "memory_id as_of",
    "state_changed": "after",
    "unreconciled": "caller symbol limit as_of",
    "log": "conditions as_of",
    "show": "name as_of",
    "advance_clock": "caller now",
    "write_as_of": "as_of target",
    "review_queue": "at *agent *limit",
    "review_item": "memory_id at",
    "reviews_due": "at *limit",
    "open_flags": "at *reason *limit",
    "begin_publication": "caller publication *reconciled",
    "end_publication": "caller publication_id ended",
    "unknown_before": "publication *reconciled",
    "public_reason": "action_id",
    "private_reason_in": "body",
    "head": "",
    "snapshot": "",
    "rebuild": "progress",
    "embed_next": "most",
    "embedding_backlog": "",
    "forget_vectors": "",
    "status": "",
    "close": "",
}


def _parameters(name: str) -> str:
    found = inspect.signature(getattr(Book, name)).parameters.values()
    named = [("*" if p.kind is p.KEYWORD_ONLY else "") + p.name for p in found if p.name != "self"]
    return " ".join(named)


def test_the_store_exports_exactly_these_names() -> None:
    assert store.__all__ == ["Book", "Caller", "Client", "Filter", "Reply", "SearchRequest", "Written"]
    assert all(hasattr(store, name) for name in store.__all__)


def test_a_book_can_be_called_in_exactly_these_ways() -> None:
    public = {name for name, _ in inspect.getmembers(Book, callable) if not name.startswith("_")}
    assert public == BOOK.keys()
    given = {name: _parameters(name) for name in public}
    # What a later version adds comes after, by name, so that no caller breaks.
    assert {name: given[name][: len(words)] for name, words in BOOK.items()} == BOOK
    added = " ".join(given[name][len(words) :] for name, words in BOOK.items()).split()
    assert all(word.startswith("*") for word in added)


def test_what_a_caller_hands_in_has_exactly_these_fields() -> None:
    assert list(Caller.__slots__) == [
        "agent", "profile", "session_id", "tool", "model_call_id", "now", "client", "revision", "deployment",
        "observer",
        "resolves_any",
        "reviewer",
        "host",
    ]  # fmt: skip
    assert list(SearchRequest.__slots__) == [
        "query", "conditions", "as_of", "limit", "cursor", "order", "detailed", "reply_chars",
    ]  # fmt: skip
    assert list(Filter.__slots__) == [
        "kind", "symbol", "status", "tags", "agent", "since", "until", "expired", "lines",
    ]  # fmt: skip


def test_every_public_name_says_what_it_is() -> None:
    named = [getattr(store, name) for name in store.__all__]
    named += [getattr(Book, name) for name in BOOK]
    assert [item for item in named if not (item.__doc__ or "").strip()] == []


def test_the_tree_drawn_at_the_top_of_the_errors_is_the_tree_of_the_classes() -> None:
    drawn: dict[str, str] = {}
    branch: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"((?:│   |    )*)(?:[├└]── )?([A-Z]\w+)", line)
        if found is None or (line[0] not in "│├└ " and found.group(2) != "DeskbookError"):
            continue
        depth = 0 if line.startswith("Deskbook") else len(found.group(1)) // 4 + 1
        branch[depth:] = [found.group(2)]
        drawn[found.group(2)] = branch[depth - 1] if depth else "Exception"
    classes = {name: kind for name, kind in vars(errors).items()
               if isinstance(kind, type) and issubclass(kind, Exception)}  # fmt: skip
    assert drawn == {name: kind.__base__.__name__ for name, kind in classes.items()}


def test_every_error_has_a_code_of_its_own_and_says_what_it_means() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)
    assert all(kind.__doc__ for kind in kinds)


def test_an_error_carries_field_hint_and_what_was_stored() -> None:
    plain = errors.InvalidInput("text is blank.", field="text", hint="Say it in words.")
    assert (plain.message, plain.field, plain.hint, plain.stored) == (
        "text is blank.", "text", "Say it in words.", "no",
    )  # fmt: skip
    assert errors.OutcomeUnknown("x").stored == "unknown"
    assert str(plain) == plain.message
