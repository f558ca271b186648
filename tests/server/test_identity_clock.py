"""What a client program sends with a call: labels and clock, never identity (design, invariant 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.identity import CallClock, CallLabels, Identity, read_labels, resolve_clock
from server.permissions import PROFILES
from store.errors import ClockError, InvalidInput

KEYS = {
    "now": ("deskbook/now", "DESKBOOK_NOW"),
    "run": ("deskbook/run", "DESKBOOK_RUN"),
    "model_call_id": ("deskbook/model_call_id", "DESKBOOK_MODEL_CALL"),
    "session_id": ("deskbook/session_id", "DESKBOOK_SESSION"),
}
NOW = "2026-03-02T14:30:00Z"
NOW_US = 1_772_461_800_000_000


def simulated(run: str | None = None) -> Identity:
    return Identity("trader", PROFILES["trader"], "default", False, "simulated", run, "none")


LIVE = Identity("trader", PROFILES["trader"], "default", False, "live", None, "none")


@pytest.mark.parametrize("label", KEYS)
def test_a_label_comes_in_meta_or_in_the_environment_and_meta_wins(label: str) -> None:
    key, variable = KEYS[label]
    assert getattr(read_labels({key: "m"}, {}), label) == "m"
    assert getattr(read_labels(None, {variable: "e"}), label) == "e"
    assert getattr(read_labels({key: "m"}, {variable: "e"}), label) == "m"
    assert getattr(read_labels({key: None}, {variable: "e"}), label) == "e"
    assert getattr(read_labels({}, {variable: ""}), label) is None


@pytest.mark.parametrize("label", KEYS)
@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ("", "is empty"),
        ("x" * 129, "has 129 characters"),
        ("a\x00b", "holds a control character"),
        ("a\nb", "holds a control character"),
        ("\ud800", "holds a control character"),
        (17, "is not text"),
        (True, "is not text"),
        ({"a": 1}, "is not text"),
    ],
)
def test_a_label_that_is_no_identifier_is_refused_by_its_key(label: str, sent: object, fault: str) -> None:
    key, _ = KEYS[label]
    with pytest.raises(InvalidInput) as caught:
        read_labels({key: sent}, {})
    assert caught.value.field == key
    assert caught.value.message.startswith(f"{key} {fault}")


@pytest.mark.parametrize("label", KEYS)
def test_a_variable_that_is_no_identifier_is_refused_by_its_name(label: str) -> None:
    _, variable = KEYS[label]
    with pytest.raises(InvalidInput) as caught:
        read_labels(None, {variable: "x" * 129})
    assert caught.value.field == variable


def test_identity_is_never_read_from_labels_p127() -> None:
    claims = {"deskbook/agent": "pm", "deskbook/profile": "reviewer", "clientInfo": {"name": "pm"}}
    assert read_labels(claims, {"DESKBOOK_AGENT": "pm"}) == CallLabels()


def test_a_call_without_labels_is_a_live_call_p137() -> None:
    assert resolve_clock(LIVE, read_labels(None, {})) == CallClock(run=None, now_us=None)


@pytest.mark.parametrize(
    ("meta", "environ", "field"),
    [
        ({"deskbook/now": NOW}, {}, "deskbook/now"),
        ({"deskbook/run": "r"}, {}, "deskbook/run"),
        ({}, {"DESKBOOK_NOW": NOW}, "DESKBOOK_NOW"),
        ({}, {"DESKBOOK_RUN": "r"}, "DESKBOOK_RUN"),
        ({"deskbook/now": "nonsense"}, {}, "deskbook/now"),
    ],
)
def test_a_live_identity_refuses_now_and_run(
    meta: dict[str, object], environ: dict[str, str], field: str
) -> None:
    with pytest.raises(ClockError) as caught:
        resolve_clock(LIVE, read_labels(meta, environ))
    assert caught.value.field == field
    assert f"{field} is refused" in caught.value.message
    assert "without it" in (caught.value.hint or "")


def test_a_simulated_call_has_the_run_and_the_time_that_were_sent() -> None:
    labels = read_labels({"deskbook/run": "r", "deskbook/now": "2026-03-02T09:30:00-05:00"}, {})
    assert resolve_clock(simulated(), labels) == CallClock(run="r", now_us=NOW_US)


def test_a_fixed_run_need_not_be_sent_but_may_be() -> None:
    for meta in ({"deskbook/now": NOW}, {"deskbook/now": NOW, "deskbook/run": "fixed"}):
        assert resolve_clock(simulated("fixed"), read_labels(meta, {})) == CallClock("fixed", NOW_US)


@pytest.mark.parametrize(
    ("meta", "environ", "field"),
    [({"deskbook/run": "other"}, {}, "deskbook/run"), ({}, {"DESKBOOK_RUN": "other"}, "DESKBOOK_RUN")],
)
def test_another_run_than_the_fixed_one_is_refused(
    meta: dict[str, object], environ: dict[str, str], field: str
) -> None:
    with pytest.raises(ClockError) as caught:
        resolve_clock(simulated("fixed"), read_labels({"deskbook/now": NOW, **meta}, environ))
    assert caught.value.field == field
    assert "fixed" in caught.value.message


def test_a_simulated_call_without_a_run_is_refused_with_the_ways_to_name_one() -> None:
    with pytest.raises(ClockError) as caught:
        resolve_clock(simulated(), read_labels({"deskbook/now": NOW}, {}))
    assert caught.value.field == "deskbook/run"
    assert "DESKBOOK_RUN" in (caught.value.hint or "")


def test_a_simulated_call_without_a_time_never_gets_the_wall_clock_p075() -> None:
    clock = resolve_clock(simulated("fixed"), read_labels({}, {}))
    assert clock == CallClock(run="fixed", now_us=None)


@pytest.mark.parametrize("now", ["2026-03-02T14:30:00", "2026-03-02", "1772461800", "yesterday"])
@pytest.mark.parametrize("from_meta", [True, False])
def test_a_time_that_names_no_instant_is_refused_where_it_came_from(now: str, from_meta: bool) -> None:
    labels = read_labels({"deskbook/now": now}, {}) if from_meta else read_labels(None, {"DESKBOOK_NOW": now})
    with pytest.raises(InvalidInput) as caught:
        resolve_clock(simulated("r"), labels)
    assert caught.value.field == ("deskbook/now" if from_meta else "DESKBOOK_NOW")
    assert "2026-03-02T" in (caught.value.hint or "")


@given(
    st.builds(
        CallLabels,
        now=st.none() | st.just(NOW),
        run=st.none() | st.sampled_from(["r", "s"]),
        model_call_id=st.none() | st.text(max_size=5),
        session_id=st.none() | st.text(max_size=5),
    ),
    st.sampled_from([LIVE, simulated(), simulated("r")]),
)
def test_a_call_is_live_exactly_when_its_identity_is(labels: CallLabels, identity: Identity) -> None:
    try:
        clock = resolve_clock(identity, labels)
    except ClockError:
        return
    if identity.mode == "live":
        assert clock == CallClock(None, None)
        assert labels.now is None
        assert labels.run is None
    else:
        assert clock.run == (identity.run or labels.run)
        assert clock.now_us == (None if labels.now is None else NOW_US)
