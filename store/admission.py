"""What a new memory passes before it is written: is it new, who must agree, how long it holds, what it resembles.

Nothing is dropped here but a word-for-word repeat, which is counted; nothing is retired or merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from .caller import Caller
from .clock import format_instant, later
from .engines.base import Transaction
from .errors import TooManyPending
from .event_parts import Alike, Event
from .events import DecisionRecorded, Recorded, ThesisOpened, ThesisUpdated
from .ledger import Draft
from .lifecycle import ENDED, ORDER_ACTION, REPEATABLE, THESIS
from .planning import Plan, about
from .policy import Policy
from .review_events import Edited, Repeated
from .rows import Said, Version
from .screening.commands import Screened
from .screening.contradictions import Claim, compare
from .screening.instructions import instructs
from .screening.nearness import nearest
from .terms import query_terms, same_mark
from .view import View

LOOKED_AT: Final = 20
"""A new memory is held against so many of the newest on its instrument, or that share its telling words."""

COMPARED: Final = 5
"""Of those so many, the likest, are taken apart and compared."""

ALIKE_TOLD: Final = 5
_KEPT_WORDS: Final = ("category", "horizon", "target", "invalidation")
SEARCHES_LINKED: Final = 20
_WORDS: Final = 3
_COMPARED_KINDS: Final = frozenset(REPEATABLE)
_TERMS: Final = ("category", "action", "outcome", "direction", "horizon", "target", "invalidation")
"""What a memory says besides its text: one that says another thing here is no repeat."""


class ConfirmationNeeded(Exception):
    """A person is to be asked in the host before the memory is kept; nothing was written."""

    def __init__(self, kind: str, event: Recorded, symbol: str | None, replaced: str | None = None) -> None:
        super().__init__("a person is to be asked")
        self.kind = kind
        self.event = event
        self.symbol = symbol
        self.replaced = replaced
        """The text of the memory that the event supersedes."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What is known when a plan's memory is admitted."""

    transaction: Transaction
    caller: Caller
    view: View
    policy: Policy
    screened: Screened

    def admit(self, planned: Plan) -> Plan:
        """The plan with what the desk asks of its first entry; an exact repeat becomes the count of it.

        Raises TooManyPending, and ConfirmationNeeded where a person can be asked at once.
        """
        if not planned.drafts:
            return planned
        draft = planned.drafts[0]
        event, kind = draft.event, draft.kind or ""
        if isinstance(event, ThesisUpdated):
            return _first(planned, self._reworded(event, draft.subject_id))
        if not isinstance(event, Recorded):
            return replace(
                _first(planned, self._edited(draft)),
                before=tuple(replace(each, event=self._edited(each)) for each in planned.before),
            )
        before = self._said_before(event, kind, draft.symbol)
        standing = self._standing(event, before)
        if standing is not None:
            return self._repeat(standing)
        state = self._review_state(event, kind, draft.symbol)
        alike = self._alike(event, kind, draft.symbol)
        changes: dict[str, Any] = self._dates(event, kind) | {"review_state": state}
        if state == "pending":
            changes["pending_until"] = later(self.view.at, self.policy.pending_lasts)
        if alike:
            changes["alike"] = tuple(alike)
        searches = self._searches()
        if isinstance(event, DecisionRecorded) and draft.retrieval_id is None and searches:
            changes["retrievals"] = tuple(searches)
        notices = (*self._notices(state, draft.subject_id, alike), *_rejections(before))
        changes["notices"] = (*event.notices, *notices)
        admitted = self._marked(event.model_copy(update=changes))
        lineage = draft.retrieval_id or (searches[0] if searches else None)
        return replace(
            planned,
            drafts=(
                replace(draft, event=admitted, retrieval_id=lineage),
                *(self._beside(each, searches) for each in planned.drafts[1:]),
            ),
            # What a waiting note is to replace stands until somebody has approved it.
            before=() if state == "pending" else planned.before,
        )

    def _reworded(self, event: ThesisUpdated, thesis_id: str) -> Event:
        """The new wording of a thesis, which waits where the thesis would have to; the old one stands meanwhile."""
        changes: dict[str, Any] = {}
        old = self.view.version(thesis_id)
        if not self.caller.reviewer and self.policy.gate(self.caller.profile, THESIS) != "auto":
            waits = old is not None and (old.review_state == "pending" or "proposed" in old.details)
            if not waits:
                self._refuse_too_many()
            until = later(self.view.at, self.policy.pending_lasts)
            changes = {"review_state": "pending", "pending_until": until}
        notices = self._notices(changes.get("review_state", "none"), thesis_id, [])
        changes["notices"] = (*event.notices, *notices)
        return self._with_what_stays(event.model_copy(update=changes), old)

    def _with_what_stays(self, event: ThesisUpdated | Edited, old: Version | None) -> Event:
        """The event marked by the memory as it will stand: its new words and the terms that it keeps."""
        marked = self._marked(event)
        if old is None:
            return marked
        kept = [old.details.get(name) for name in _KEPT_WORDS if getattr(event, name, None) is None]
        kept += [*(old.tags if event.tags is None else ()), old.symbol]
        why = (*self.screened.suspicious, *instructs("\n".join(str(word) for word in kept if word)))
        return marked.model_copy(update={"suspicious": tuple(dict.fromkeys(why))}) if why else marked

    def _beside(self, draft: Draft, searches: list[str]) -> Draft:
        """What is recorded with the first entry, such as the decision behind an order: its words are the same."""
        if not isinstance(draft.event, Recorded):
            return draft
        linked = {"retrievals": tuple(searches)} if searches else {}
        event = self._marked(draft.event.model_copy(update=linked))
        return replace(draft, event=event, retrieval_id=searches[0] if searches else None)

    def _edited(self, draft: Draft) -> Event:
        if isinstance(draft.event, Edited):
            return self._with_what_stays(draft.event, self.view.version(draft.subject_id))
        return self._marked(draft.event)

    def _marked(self, event: Event) -> Event:
        """The event with what was masked in it, and why it seems to instruct its reader."""
        told = {"masked": self.screened.masked, "suspicious": self.screened.suspicious}
        known = type(event).model_fields
        return event.model_copy(
            update={name: value for name, value in told.items() if value and name in known}
        )

    def _said_before(self, event: Recorded, kind: str, symbol: str | None) -> list[Version]:
        """The caller's own memories that say the same word for word, whatever became of them, the newest first."""
        if kind not in REPEATABLE:
            return []
        mark = same_mark(self.caller.agent, kind, symbol, event.text)
        wanted = (self.caller.agent, kind, symbol, event.text)
        found = self.transaction.same(mark, self.view.cut)
        return [each for each in found if (each.agent, each.kind, each.symbol, each.text) == wanted]

    def _standing(self, event: Recorded, before: list[Version]) -> Version | None:
        """The one of those that still stands or waits, on the same terms, and holds for as long."""
        if getattr(event, "supersedes", None) is not None:
            return None
        for version in before:
            over = version.status in (*ENDED, "closed") or version.review_state == "rejected"
            if over or self._is_over(version):
                continue
            asked = [
                (event.review_by, version.stale_at),
                (event.expires_at, version.expires_at),
                *((getattr(event, name, None), version.details.get(name)) for name in _TERMS),
            ]
            if all(given is None or given == standing for given, standing in asked):
                return version
        return None

    def _is_over(self, version: Version) -> bool:
        ends = (version.expires_at, version.details.get("pending_until"))
        return any(end is not None and end <= self.view.at for end in ends)

    def _repeat(self, standing: Version) -> Plan:
        count = self.transaction.count_repeats(standing.memory_id, self.view.cut) + 1
        how = "waits for a person" if standing.review_state == "pending" else "stands"
        notice = (
            f"This is word for word {standing.memory_id}, which {how}; it was counted ({count}) and nothing new was "
            "kept, other tags neither. Say what is new, or go on."
        )
        event = Repeated(count=count, notices=(notice, *self._of_standing(standing)))
        return Plan((about(standing, event),))

    def _of_standing(self, standing: Version) -> Iterator[str]:
        """What who says it again must know of the memory that stands."""
        if standing.expires_at is not None:
            until = format_instant(standing.expires_at, self.view.zone)
            yield f"It expires at {until}; name expires_at to keep one that holds for another time."
        if standing.review_state == "pending":
            yield _how(standing.memory_id)

    def _review_state(self, event: Recorded, kind: str, symbol: str | None) -> str:
        if self.caller.reviewer:
            return "approved"
        gate = "auto" if kind == ORDER_ACTION else self.policy.gate(self.caller.profile, kind)
        if gate == "ask" and self.caller.host == "confirmed":
            return "host_confirmed"
        if gate == "ask" and self.caller.host == "asks":
            old = getattr(event, "supersedes", None)
            standing = None if old is None else self.view.version(old)
            raise ConfirmationNeeded(kind, event, symbol, None if standing is None else standing.text)
        if gate == "auto":
            return "none"
        self._refuse_too_many()
        return "pending"

    def _refuse_too_many(self) -> None:
        waiting = self.transaction.count_pending(self.caller.agent, self.view.cut, self.view.at)
        if waiting >= self.policy.max_pending:
            raise TooManyPending(
                f"{self.caller.agent} has {waiting} memories that wait for a person, as many as may.",
                hint="Ask the operator to look with `deskbook review`, or withdraw some with resolve_memory.",
            )

    def _dates(self, event: Recorded, kind: str) -> dict[str, Any]:
        """When it is due and expires, by the desk's defaults where its author did not say."""
        found: dict[str, Any] = {}
        for name, ages in (
            ("review_by", self.policy.review_after),
            ("expires_at", self.policy.expires_after),
        ):
            if getattr(event, name) is None and kind in ages:
                found[name] = later(self.view.at, ages[kind])
        return found

    def _alike(self, event: Recorded, kind: str, symbol: str | None) -> list[Alike]:
        """The standing memories that it nearly repeats or seems to contradict, contradictions first."""
        if kind not in _COMPARED_KINDS:
            return []
        new, words = _claim(kind, symbol, event), event.text.split()
        telling = () if symbol else sorted(query_terms(event.text), key=len, reverse=True)[:_WORDS]
        replaced = getattr(event, "supersedes", None)
        standing = [
            said for said in self.view.said(symbol, telling, limit=LOOKED_AT) if said.memory_id != replaced
        ]
        # In the very words, in whatever kind: what was found and is saved again is known as such.
        again = [said for said in standing if said.symbol == symbol and said.text.split() == words]
        found = [Alike(id=said.memory_id, why="near_repeat") for said in again]
        others = [said for said in standing if said not in again]
        claims = [_claim_of(said) for said in others]
        for place in nearest(new, claims, COMPARED):
            why = compare(new, claims[place])
            if why is not None:
                found.append(Alike(id=others[place].memory_id, why=why))
        found.sort(key=lambda alike: alike.why == "near_repeat")
        return found[:ALIKE_TOLD]

    def _searches(self) -> list[str]:
        """The caller's searches since it decided last, newest first: in this call, this session or, in a run, all."""
        call = self.caller.model_call_id
        session = None if call is not None or self.view.in_run else self.caller.session_id
        found = self.transaction.searches_before(
            self.caller.agent, call, session, self.view.cut, limit=SEARCHES_LINKED
        )
        if not found:
            return []
        decided = self.transaction.last_decision(self.caller.agent, found[-1][1])
        return [retrieval_id for retrieval_id, sequence in found if sequence > decided]

    def _notices(self, state: str, memory_id: str, alike: list[Alike]) -> Iterator[str]:
        if state == "pending":
            until = format_instant(later(self.view.at, self.policy.pending_lasts), self.view.zone)
            yield f"It waits for a person and is found by nobody until then, at most until {until}. {_how(memory_id)}"
        for other in alike:
            if other.why == "near_repeat":
                yield f"It says nearly the same as {other.id}."
            else:
                yield (
                    f"It may contradict {other.id} ({other.why}). If it does, flag_memory with reason conflicting "
                    "and other_id records that; if it replaces your own note, name it in supersedes."
                )
        if self.screened.suspicious:
            yield (
                f"It reads like an instruction ({', '.join(self.screened.suspicious)}): it is kept, shown quoted, "
                "and never put into the state."
            )
        if self.screened.masked:
            yield f"What seemed to be a secret was masked in {', '.join(self.screened.masked)}."


def _rejections(before: list[Version]) -> Iterator[str]:
    """What its author must know who says again what a reviewer has rejected."""
    for version in before:
        if version.review_state == "rejected":
            by = version.details.get("reviewed_by", "a reviewer")
            yield f"{by} rejected the same words before, as {version.memory_id}; get_memory says why."
            return


def _how(memory_id: str) -> str:
    return f"A reviewer decides: deskbook review approve {memory_id}"


def _first(planned: Plan, event: Event) -> Plan:
    return replace(planned, drafts=(replace(planned.drafts[0], event=event), *planned.drafts[1:]))


def _claim(kind: str, symbol: str | None, event: Recorded) -> Claim:
    if not isinstance(event, ThesisOpened):
        return Claim(kind, symbol, event.text)
    return Claim(kind, symbol, event.text, event.direction, event.target, event.horizon)


def _claim_of(said: Said) -> Claim:
    return Claim(said.kind, said.symbol, said.text, said.direction, said.target, said.horizon)
