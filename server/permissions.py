"""What an identity may do: actions, profiles and the tools they open, all as data.

The table is the design's ("The outer face", profiles). Everything is denied unless a profile names it:
a tool, resource or prompt that stands in no mapping here may be called by nobody. One predicate,
`permits`, answers both for listing and for calling, so that the two cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, Protocol

from store.errors import ConfigError

from .near_miss import did_you_mean


class Action(StrEnum):
    """One thing an identity may be allowed to do; the value is its name in `allow` and `deny`.

    Three actions widen another and open no tool alone: `resolve_any` lets `resolve` reach memories of
    other authors, `observe` makes reported outcomes and positions observations instead of claims,
    `sign_off` is a person's, like `approve`: `validate_lesson` asks everybody for observed outcomes.
    """

    SEARCH = "search"
    GET = "get"
    STATE = "state"
    REMEMBER = "remember"
    PROPOSE = "propose"
    RISK_NOTE = "risk_note"
    LESSON = "lesson"
    RESOLVE = "resolve"
    RESOLVE_ANY = "resolve_any"
    FLAG = "flag"
    DECIDE = "decide"
    THESIS = "thesis"
    ORDER_INTENT = "order_intent"
    LIST_UNRECONCILED = "list_unreconciled"
    ORDER_OUTCOME = "order_outcome"
    OBSERVE = "observe"
    VALIDATE_LESSON = "validate_lesson"
    SIGN_OFF = "sign_off"
    POSITIONS = "positions"
    ADVANCE_CLOCK = "advance_clock"
    APPROVE = "approve"
    REDACT = "redact"
    PUBLISH = "publish"
    VERIFY = "verify"
    EXPORT = "export"


READING: Final[frozenset[Action]] = frozenset(
    {
        Action.SEARCH,
        Action.GET,
        Action.STATE,
        Action.LIST_UNRECONCILED,
        Action.VERIFY,
        Action.EXPORT,
    }
)
"""The actions that change no memory; all that `read_only` leaves."""

Reach = Literal["none", "own", "any"]
Standing = Literal["none", "claim", "observed"]
Validation = Literal["none", "observed_only", "free"]


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of allowed actions; a read-only profile holds reading actions only, however it was made."""

    name: str
    actions: frozenset[Action]
    read_only: bool = False

    def __post_init__(self) -> None:
        if self.read_only:
            object.__setattr__(self, "actions", self.actions & READING)

    def allows(self, action: Action) -> bool:
        """Say whether the profile names the action."""
        return action in self.actions

    @property
    def resolves(self) -> Reach:
        """Whose memories `resolve_memory` may resolve: nobody's, the caller's own, or anybody's."""
        if Action.RESOLVE not in self.actions:
            return "none"
        return "any" if Action.RESOLVE_ANY in self.actions else "own"

    @property
    def outcomes(self) -> Standing:
        """What a reported order outcome counts as."""
        return self._standing(Action.ORDER_OUTCOME)

    @property
    def positions(self) -> Standing:
        """What reported positions count as."""
        return self._standing(Action.POSITIONS)

    @property
    def validates(self) -> Validation:
        """Which lessons it may validate: none, those with observed outcomes, or any, by a person's command."""
        if Action.VALIDATE_LESSON not in self.actions:
            return "none"
        return "free" if Action.SIGN_OFF in self.actions else "observed_only"

    def _standing(self, action: Action) -> Standing:
        if action not in self.actions:
            return "none"
        return "observed" if Action.OBSERVE in self.actions else "claim"


_READ = frozenset({Action.SEARCH, Action.GET, Action.STATE})
_NOTES = frozenset(
    {Action.REMEMBER, Action.PROPOSE, Action.RISK_NOTE, Action.LESSON, Action.RESOLVE, Action.FLAG}
)
_ORDERS = frozenset({Action.ORDER_INTENT, Action.LIST_UNRECONCILED, Action.ORDER_OUTCOME})
_TRADER = _READ | _NOTES | _ORDERS | {Action.DECIDE, Action.THESIS, Action.VALIDATE_LESSON}
_HARNESS = (
    _READ
    | _ORDERS
    | {
        Action.OBSERVE,
        Action.VALIDATE_LESSON,
        Action.SIGN_OFF,
        Action.POSITIONS,
        Action.ADVANCE_CLOCK,
    }
)
_REVIEWER = (
    _READ
    | _NOTES
    | {
        Action.VALIDATE_LESSON,
        Action.SIGN_OFF,
        Action.APPROVE,
        Action.REDACT,
        Action.PUBLISH,
        Action.VERIFY,
        Action.EXPORT,
    }
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("researcher", _READ | _NOTES),
            Profile("trader", _TRADER),
            Profile("solo", _TRADER | {Action.POSITIONS}),
            Profile("harness", _HARNESS),
            Profile("reviewer", _REVIEWER),
            Profile("auditor", _READ | {Action.VERIFY, Action.EXPORT}),
        )
    }
)
"""The six built-in profiles by name."""

TOOL_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "remember": Action.REMEMBER,
        "search_memory": Action.SEARCH,
        "remember_proposal": Action.PROPOSE,
        "remember_risk_note": Action.RISK_NOTE,
        "remember_decision": Action.DECIDE,
        "remember_lesson": Action.LESSON,
        "open_thesis": Action.THESIS,
        "update_thesis": Action.THESIS,
        "close_thesis": Action.THESIS,
        "get_memory": Action.GET,
        "get_memory_state": Action.STATE,
        "resolve_memory": Action.RESOLVE,
        "flag_memory": Action.FLAG,
        "advance_clock": Action.ADVANCE_CLOCK,
        "record_order_intent": Action.ORDER_INTENT,
        "record_order_outcome": Action.ORDER_OUTCOME,
        "list_unreconciled_orders": Action.LIST_UNRECONCILED,
        "validate_lesson": Action.VALIDATE_LESSON,
        "report_positions": Action.POSITIONS,
    }
)
"""The action each tool needs; a tool that is not here is allowed to nobody."""

REVIEW: Final = "review"
"""What such a call is recorded under: a caller's own words do not fill the ledger."""

_FOR_PEOPLE: Final = frozenset(
    {"approve", "reject", "redact", "publish", "sign", "signoff", "settle", "reviewer"}
)

SIMULATED_ONLY: Final = frozenset({Action.ADVANCE_CLOCK})
"""What exists only where the clock is simulated."""

RESOURCE_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "memory://state": Action.STATE,
        "memory://memory/{id}": Action.GET,
        "memory://thesis/{id}": Action.GET,
    }
)
"""The action each resource (URI or URI template) needs."""

PROMPT_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {"decision_journal": Action.DECIDE, "review_open_thesis": Action.THESIS}
)
"""The action each prompt needs: a prompt is offered to those who may follow it."""


class Caller(Protocol):
    """What the predicate needs of an identity."""

    @property
    def profile(self) -> Profile:
        """The caller's resolved profile."""

    @property
    def mode(self) -> str:
        """Whether the caller's clock is "live" or "simulated"."""

    @property
    def read_only(self) -> bool:
        """Whether the launch or token bars every change."""


class ProfileRules(Protocol):
    """What `[profiles.NAME]` says."""

    @property
    def extends(self) -> str | None:
        """The profile to start from; None starts from nothing."""

    @property
    def allow(self) -> Sequence[str]:
        """Names of actions to add."""

    @property
    def deny(self) -> Sequence[str]:
        """Names of actions to take away."""

    @property
    def read_only(self) -> bool:
        """Whether only reading actions stay."""


def permits(caller: Caller, action: Action | None) -> bool:
    """Say whether the caller may take the action; None (a name nobody mapped) is denied."""
    if action is None or action not in caller.profile.actions:
        return False
    if action in SIMULATED_ONLY and caller.mode != "simulated":
        return False
    return action in READING or not caller.read_only


def may_call(caller: Caller, tool: str) -> bool:
    """Say whether the caller may list and call the tool; an unlisted tool is denied."""
    return permits(caller, TOOL_ACTIONS.get(tool))


def for_people(name: str) -> bool:
    """Say whether a name that is no tool asks for what a person alone does, such as `approve_memory`."""
    words = re.split(r"[^a-z]+", name.casefold())
    return name not in TOOL_ACTIONS and not _FOR_PEOPLE.isdisjoint(words)


def may_read(caller: Caller, resource: str) -> bool:
    """Say whether the caller may list and read the resource, given its URI template or a URI under it."""
    action = RESOURCE_ACTIONS.get(resource)
    if action is None:
        folder, separator, name = resource.rpartition("/")
        action = RESOURCE_ACTIONS.get(f"{folder}/{{id}}") if separator and name else None
    return permits(caller, action)


def may_prompt(caller: Caller, prompt: str) -> bool:
    """Say whether the caller may list and get the prompt; an unlisted prompt is denied."""
    return permits(caller, PROMPT_ACTIONS.get(prompt))


def resolve_profile(
    name: str, custom: Mapping[str, ProfileRules], *, read_only: bool = False, field: str = "profile"
) -> Profile:
    """Return the profile `name`, a built-in one or one made by the rules in `custom`.

    A deny or a `read_only` anywhere along `extends` wins over every allow. `field` is named when `name`
    is unknown. Raises ConfigError for an unknown profile or action, a cycle, and a custom profile that
    takes a built-in's name.
    """
    for reserved in PROFILES.keys() & custom.keys():
        raise ConfigError(
            f"profiles.{reserved} would replace a built-in profile.",
            field=f"profiles.{reserved}",
            hint=f'Give it a name of its own and write extends = "{reserved}".',
        )
    allowed: set[Action] = set()
    denied: set[Action] = set()
    seen: list[str] = []
    step: str | None = name
    while step is not None:
        if step in seen:
            circle = " -> ".join([*seen[seen.index(step) :], step])
            raise ConfigError(
                f"profiles.{step}.extends runs in a circle: {circle}.",
                field=field,
                hint="Let one of them extend a built-in profile, or nothing.",
            )
        if step in PROFILES:
            allowed |= PROFILES[step].actions
            break
        if step not in custom:
            raise _unknown_profile(step, custom, field)
        seen.append(step)
        rules = custom[step]
        allowed |= _actions(rules.allow, f"profiles.{step}.allow")
        denied |= _actions(rules.deny, f"profiles.{step}.deny")
        read_only = read_only or rules.read_only
        field = f"profiles.{step}.extends"
        step = rules.extends
    return Profile(name, frozenset(allowed - denied), read_only)


def _actions(names: Sequence[str], field: str) -> set[Action]:
    return {_action(name, field) for name in names}


def _action(name: str, field: str) -> Action:
    try:
        return Action(name)
    except ValueError:
        pass
    known = [action.value for action in Action]
    of_tool = TOOL_ACTIONS.get(name)
    near = f' (the tool "{name}" needs the action "{of_tool}")' if of_tool else did_you_mean(name, known)
    raise ConfigError(
        f'{field} names "{name[:80]}", which is no action{near}.',
        field=field,
        hint=f"Actions: {', '.join(known)}.",
    )


def _unknown_profile(name: str, custom: Mapping[str, ProfileRules], field: str) -> ConfigError:
    known = [*PROFILES, *custom]
    return ConfigError(
        f'{field} is "{name[:80]}", which is no profile{did_you_mean(name, known)}.',
        field=field,
        hint=f"Profiles: {', '.join(known)}.",
    )
