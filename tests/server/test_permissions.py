"""Who may do what: the design's table, custom profiles, and that nothing opens unless a profile names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from server.identity import Identity
from server.permissions import (
    PROFILES,
    PROMPT_ACTIONS,
    READING,
    RESOURCE_ACTIONS,
    TOOL_ACTIONS,
    Action,
    Profile,
    may_call,
    may_prompt,
    may_read,
    permits,
    resolve_profile,
)
from server.sections import ProfileSettings
from store.errors import ConfigError

ORDER = ("researcher", "trader", "solo", "harness", "reviewer", "auditor")
NOTES = ("remember", "propose", "risk_note", "lesson", "resolve", "flag")
READING_TOOLS = {"search_memory", "get_memory", "get_memory_state", "list_unreconciled_orders"}

# The design's table, a row for each action and a column for each profile of ORDER.
TABLE = {
    **dict.fromkeys(("search", "get", "state"), "yes yes yes yes yes yes"),
    **dict.fromkeys(NOTES, "yes yes yes no yes no"),
    **dict.fromkeys(("decide", "thesis"), "no yes yes no no no"),
    **dict.fromkeys(("order_intent", "list_unreconciled"), "no yes yes yes no no"),
    "order_outcome": "no yes yes yes no no",
    "validate_lesson": "no yes yes yes yes no",
    "positions": "no no yes yes no no",
    "advance_clock": "no no no yes no no",
    **dict.fromkeys(("approve", "redact", "publish"), "no no no no yes no"),
    **dict.fromkeys(("verify", "export"), "no no no no yes yes"),
}

# The rows that say more than yes or no: column by column, in ORDER.
QUALIFIED = {
    "resolves": "own own own none own none",
    "outcomes": "none claim claim observed none none",
    "positions": "none none claim observed none none",
    "validates": "none observed_only observed_only free free none",
}


def identity(profile: Profile, *, read_only: bool = False) -> Identity:
    return Identity("someone", profile, "default", read_only, "live", None, "none")


def custom(**profiles: Mapping[str, object]) -> dict[str, ProfileSettings]:
    return {name: ProfileSettings.model_validate(dict(rules)) for name, rules in profiles.items()}


@pytest.mark.parametrize("action", TABLE)
def test_built_in_profiles_are_the_table_of_the_design(action: str) -> None:
    expected = dict(zip(ORDER, TABLE[action].split(), strict=True))
    actual = {name: "yes" if PROFILES[name].allows(Action(action)) else "no" for name in ORDER}
    assert actual == expected


@pytest.mark.parametrize("question", QUALIFIED)
def test_what_a_profile_may_reach_and_what_its_word_counts_as_is_the_table(question: str) -> None:
    assert [getattr(PROFILES[name], question) for name in ORDER] == QUALIFIED[question].split()


def test_every_action_stands_in_the_table_or_only_widens_another() -> None:
    assert {action.value for action in Action} - TABLE.keys() == {"resolve_any", "observe", "sign_off"}
    assert tuple(PROFILES) == ORDER


def test_a_widening_action_opens_nothing_alone() -> None:
    profile = Profile("p", frozenset({Action.RESOLVE_ANY, Action.OBSERVE, Action.SIGN_OFF}))
    assert (profile.resolves, profile.outcomes, profile.positions, profile.validates) == ("none",) * 4
    assert [tool for tool in TOOL_ACTIONS if may_call(identity(profile), tool)] == []


def test_resolving_the_memories_of_others_is_an_action_of_its_own() -> None:
    profile = resolve_profile("lead", custom(lead={"extends": "researcher", "allow": ["resolve_any"]}))
    assert profile.resolves == "any"


def test_reading_actions_open_no_tool_that_writes() -> None:
    reading_tools = {tool for tool, action in TOOL_ACTIONS.items() if action in READING}
    assert reading_tools == READING_TOOLS


def test_a_researcher_is_shown_the_notes_and_no_decision_or_thesis() -> None:
    assert {tool for tool in TOOL_ACTIONS if may_call(identity(PROFILES["researcher"]), tool)} == {
        "remember",
        "search_memory",
        "remember_proposal",
        "remember_risk_note",
        "remember_lesson",
        "get_memory",
        "get_memory_state",
        "resolve_memory",
        "flag_memory",
    }


@pytest.mark.parametrize(("name", "barred"), [("trader", {"report_positions"}), ("solo", set())])
def test_a_trader_and_a_single_program_may_call_every_tool_of_memory(name: str, barred: set[str]) -> None:
    assert len(TOOL_ACTIONS) == 19
    callable_tools = {tool for tool in TOOL_ACTIONS if may_call(identity(PROFILES[name]), tool)}
    assert callable_tools == TOOL_ACTIONS.keys() - {"advance_clock"} - barred


def test_the_clock_is_moved_by_a_harness_alone_and_only_where_it_is_simulated() -> None:
    for name, profile in PROFILES.items():
        assert not may_call(identity(profile), "advance_clock")
        simulated = replace(identity(profile), mode="simulated", run="r")
        assert may_call(simulated, "advance_clock") == (name == "harness")


def test_a_harness_reports_and_judges_and_writes_no_notes() -> None:
    callable_tools = {tool for tool in TOOL_ACTIONS if may_call(identity(PROFILES["harness"]), tool)}
    assert callable_tools == READING_TOOLS | {
        "record_order_intent", "record_order_outcome", "report_positions", "validate_lesson",
    }  # fmt: skip


def test_a_reviewer_writes_notes_and_judges_lessons() -> None:
    callable_tools = {tool for tool in TOOL_ACTIONS if may_call(identity(PROFILES["reviewer"]), tool)}
    researcher = {tool for tool in TOOL_ACTIONS if may_call(identity(PROFILES["researcher"]), tool)}
    assert callable_tools == researcher | {"validate_lesson"}


def test_an_auditor_writes_nothing() -> None:
    callable_tools = {tool for tool in TOOL_ACTIONS if may_call(identity(PROFILES["auditor"]), tool)}
    assert callable_tools == {"search_memory", "get_memory", "get_memory_state"}


@given(st.text(max_size=40))
def test_a_name_that_nobody_listed_is_denied_to_everyone(name: str) -> None:
    assume(name not in TOOL_ACTIONS and name not in PROMPT_ACTIONS)
    everything = identity(Profile("all", frozenset(Action)))
    assert not may_call(everything, name)
    assert not may_prompt(everything, name)
    assert not permits(everything, None)


@pytest.mark.parametrize(
    ("resource", "allowed"),
    [
        ("memory://state", True),
        ("memory://memory/{id}", True),
        ("memory://memory/mem_1", True),
        ("memory://thesis/th_1", True),
        ("memory://memory/", False),
        ("memory://memory", False),
        ("memory://state/x", False),
        ("memory://secret/x", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_resources_are_judged_by_template_and_uri_alike(resource: str, allowed: bool) -> None:
    assert may_read(identity(PROFILES["auditor"]), resource) is allowed
    nobody = identity(Profile("nothing", frozenset()))
    assert not may_read(nobody, resource)


def test_one_rule_covers_every_way_to_read_a_memory_p131() -> None:
    without_get = identity(resolve_profile("p", custom(p={"extends": "trader", "deny": ["get"]})))
    assert not may_call(without_get, "get_memory")
    assert [uri for uri in RESOURCE_ACTIONS if may_read(without_get, uri)] == ["memory://state"]


def test_prompts_are_offered_to_those_who_may_follow_them() -> None:
    assert [may_prompt(identity(PROFILES["trader"]), prompt) for prompt in PROMPT_ACTIONS] == [True, True]
    assert [may_prompt(identity(PROFILES["researcher"]), prompt) for prompt in PROMPT_ACTIONS] == [False] * 2


def test_each_caller_is_judged_by_its_own_profile_however_calls_alternate_p129() -> None:
    narrow = identity(PROFILES["researcher"])
    wide = identity(PROFILES["trader"])
    judged = [may_call(caller, "remember_decision") for _ in range(100) for caller in (narrow, wide)]
    assert judged == [False, True] * 100


def test_a_profile_from_nothing_holds_what_it_allows_and_no_more() -> None:
    profile = resolve_profile("p", custom(p={"allow": ["search", "remember"]}))
    assert profile == Profile("p", frozenset({Action.SEARCH, Action.REMEMBER}))
    assert resolve_profile("empty", custom(empty={})).actions == frozenset()


def test_a_deny_wins_over_an_allow_beside_it_and_over_one_further_along() -> None:
    rules = custom(
        beside={"allow": ["flag"], "deny": ["flag"]},
        base={"extends": "trader", "deny": ["decide"]},
        child={"extends": "base", "allow": ["decide", "verify"]},
    )
    assert not resolve_profile("beside", rules).allows(Action.FLAG)
    child = resolve_profile("child", rules)
    assert not child.allows(Action.DECIDE)
    assert child.allows(Action.VERIFY)
    assert child.allows(Action.THESIS)


def test_read_only_anywhere_along_extends_stays() -> None:
    rules = custom(
        base={"extends": "trader", "read_only": True}, child={"extends": "base", "allow": ["decide"]}
    )
    child = resolve_profile("child", rules)
    assert child.read_only
    assert child.actions == {Action.SEARCH, Action.GET, Action.STATE, Action.LIST_UNRECONCILED}


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_profiles_that_extend_in_a_circle_are_refused(length: int) -> None:
    rules = custom(**{f"p{i}": {"extends": f"p{(i + 1) % length}"} for i in range(length)})
    with pytest.raises(ConfigError, match="runs in a circle: p0 -> "):
        resolve_profile("p0", rules)


def test_an_unknown_profile_is_refused_with_a_near_miss_and_the_list() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_profile("Resarcher", custom(mine={}), field="agents.a.profile")
    assert caught.value.message == (
        'agents.a.profile is "Resarcher", which is no profile (did you mean "researcher"?).'
    )
    assert caught.value.hint == f"Profiles: {', '.join(ORDER)}, mine."


@pytest.mark.parametrize("key", ["allow", "deny"])
@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("serch", '(did you mean "search"?)'),
        ("SEARCH", '(did you mean "search"?)'),
        ("close_thesis", '(the tool "close_thesis" needs the action "thesis")'),
        ("*", ""),
    ],
)
def test_an_unknown_action_is_refused_with_a_near_miss(key: str, word: str, advice: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_profile("p", custom(p={key: [word]}))
    assert caught.value.field == f"profiles.p.{key}"
    assert f'profiles.p.{key} names "{word}", which is no action' in caught.value.message
    assert advice in caught.value.message


def test_a_built_in_profile_cannot_be_replaced() -> None:
    with pytest.raises(ConfigError, match=r"profiles\.researcher would replace"):
        resolve_profile("trader", custom(researcher={"extends": "trader"}))


def test_profiles_and_mappings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PROFILES["auditor"].actions = frozenset(Action)  # type: ignore[misc]
    for table in (PROFILES, TOOL_ACTIONS, RESOURCE_ACTIONS, PROMPT_ACTIONS):
        with pytest.raises(TypeError, match="does not support item assignment"):
            table["x"] = Action.SEARCH  # type: ignore[index]


NAMES = ["a", "b", "c", "d"]
rule_sets = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        ProfileSettings,
        extends=st.sampled_from([None, *NAMES, *ORDER]),
        allow=st.lists(st.sampled_from([action.value for action in Action])),
        deny=st.lists(st.sampled_from([action.value for action in Action])),
        read_only=st.booleans(),
    ),
    min_size=1,
)


def chain_of(name: str | None, rules: Mapping[str, ProfileSettings]) -> list[ProfileSettings]:
    chain: list[ProfileSettings] = []
    while name is not None and name in rules and rules[name] not in chain:
        chain.append(rules[name])
        name = rules[name].extends
    return chain


@given(rule_sets, st.booleans())
def test_no_rules_let_a_read_only_identity_hold_a_writing_action(
    rules: dict[str, ProfileSettings], agent_read_only: bool
) -> None:
    for name in [*rules, *ORDER]:
        try:
            profile = resolve_profile(name, rules, read_only=agent_read_only)
        except ConfigError:
            continue
        barred = agent_read_only or any(rule.read_only for rule in chain_of(name, rules))
        assert profile.read_only is barred
        if barred:
            assert profile.actions <= READING
            allowed = {tool for tool in TOOL_ACTIONS if may_call(identity(profile, read_only=True), tool)}
            assert allowed <= READING_TOOLS


@given(rule_sets)
def test_what_any_rule_of_the_chain_denies_is_never_held(rules: dict[str, ProfileSettings]) -> None:
    for name in rules:
        try:
            profile = resolve_profile(name, rules)
        except ConfigError:
            continue
        denied = {action for rule in chain_of(name, rules) for action in rule.deny}
        assert denied.isdisjoint(profile.actions)


@given(st.sets(st.sampled_from(list(Action))), st.booleans())
def test_a_read_only_identity_changes_nothing_whatever_its_profile_claims(
    actions: set[Action], profile_read_only: bool
) -> None:
    caller = identity(Profile("p", frozenset(actions), profile_read_only), read_only=True)
    assert {action for action in Action if permits(caller, action)} == actions & READING


@given(st.sets(st.sampled_from(list(Action))), st.sampled_from(list(TOOL_ACTIONS)))
def test_a_tool_is_open_exactly_when_its_action_is_held(actions: set[Action], tool: str) -> None:
    assert may_call(identity(Profile("p", frozenset(actions))), tool) is (TOOL_ACTIONS[tool] in actions)
