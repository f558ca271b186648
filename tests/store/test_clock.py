"""Times at the edge: ISO 8601 with an offset in, the same instant out, exact to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.clock import LAST_INSTANT, format_age, format_instant, parse_instant
from store.errors import InvalidInput

INSTANTS = st.integers(-LAST_INSTANT, LAST_INSTANT)
ZONES = ["UTC", "America/New_York", "Europe/Amsterdam", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Monrovia",
         "Pacific/Apia", "Asia/Kathmandu"]  # fmt: skip

READ = {
    "1970-01-01T00:00:00Z": 0,
    "1969-12-31T23:59:59.999999Z": -1,
    "2026-03-02T14:30:00Z": 1_772_461_800_000_000,
    "2026-03-02T14:30Z": 1_772_461_800_000_000,
    "2026-03-02t14:30:00z": 1_772_461_800_000_000,
    " 2026-03-02 14:30:00Z ": 1_772_461_800_000_000,
    "2026-03-02T09:30:00-05:00": 1_772_461_800_000_000,
    "2026-03-02T20:00:00+0530": 1_772_461_800_000_000,
    "2026-03-03T04:29:00+13:59": 1_772_461_800_000_000,
    "2026-03-02T14:30:00.000001Z": 1_772_461_800_000_001,
    "2026-03-02T14:30:00,5Z": 1_772_461_800_500_000,
    "2026-03-02T14:30:00.123456000Z": 1_772_461_800_123_456,
    "2024-02-29T00:00:00Z": 1_709_164_800_000_000,
}
REFUSED = {
    "2026-03-02T14:30:00": "no offset",
    "2026-03-02": "not a date and time",
    "14:30:00Z": "not a date and time",
    "1772461800": "not a date and time",
    "": "not a date and time",
    "yesterday": "not a date and time",
    "2026-03-02T14:30:00 EST": "not a date and time",
    "2026-W10-1T14:30:00Z": "not a date and time",
    "２０２６-03-02T14:30:00Z": "not a date and time",
    "2016-12-31T23:59:60Z": "leap second",
    "2016-12-31T23:59:60.5+00:00": "leap second",
    "2026-03-02T14:30:00.1234567Z": "finer than a microsecond",
    "2026-02-29T00:00:00Z": "no date and time of the calendar",
    "2026-13-01T00:00:00Z": "no date and time of the calendar",
    "2026-03-02T25:00:00Z": "no date and time of the calendar",
    "2026-03-02T14:61:00Z": "no date and time of the calendar",
    "2026-03-02T14:30:61Z": "no date and time of the calendar",
    "2026-03-02T14:30:00+24:00": "no date and time of the calendar",
    "2026-03-02T14:30:00+05:75": "no date and time of the calendar",
    "0000-01-01T00:00:00Z": "no date and time of the calendar",
    "1600-01-01T00:00:00Z": "lies outside 1684-07-28T00:12:25.259009Z to 2255-06-05T23:47:34.740991Z",
    "2300-01-01T00:00:00Z": "lies outside",
    "9999-12-31T23:59:59-23:59": "lies outside",
    "0001-01-01T00:00:00+23:59": "lies outside",
}


@pytest.mark.parametrize(("text", "us"), READ.items())
def test_iso_8601_with_an_offset_is_read_exactly(text: str, us: int) -> None:
    assert parse_instant(text, field="as_of") == us


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_what_names_no_exact_instant_is_refused_by_field_with_an_example(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as fault:
        parse_instant(text, field="as_of")
    assert fault.value.field == "as_of"
    assert fault.value.hint


@pytest.mark.parametrize("us", [LAST_INSTANT, -LAST_INSTANT])
def test_the_first_and_last_instants_are_kept_and_their_neighbours_refused(us: int) -> None:
    assert parse_instant(format_instant(us), field="x") == us
    beyond = format_instant(us + (1 if us > 0 else -1))
    with pytest.raises(InvalidInput, match="lies outside"):
        parse_instant(beyond, field="x")


@given(INSTANTS)
def test_an_instant_in_utc_reads_back_as_itself(us: int) -> None:
    text = format_instant(us)
    assert text.endswith("Z")
    assert parse_instant(text, field="x") == us


@given(INSTANTS, st.sampled_from(ZONES))
def test_an_instant_in_any_zone_reads_back_as_itself(us: int, zone: str) -> None:
    """Also before standard time, when a place's offset had seconds, which ISO 8601 cannot say."""
    assert parse_instant(format_instant(us, ZoneInfo(zone)), field="x") == us


@given(INSTANTS, st.integers(-23 * 60 - 59, 23 * 60 + 59))
def test_the_offset_moves_the_reading_and_not_the_instant(us: int, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).astimezone(zone)
    assert parse_instant(local.isoformat(), field="x") == us


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        # The hour that New York has twice in autumn, and the one it lacks in spring.
        ("2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", 3_600_000_000),
        ("2026-03-08T01:59:59-05:00", "2026-03-08T03:00:00-04:00", 1_000_000),
    ],
)
def test_a_change_of_summer_time_loses_and_repeats_no_instant(first: str, second: str, apart: int) -> None:
    early, late = (parse_instant(text, field="x") for text in (first, second))
    assert late - early == apart
    zone = ZoneInfo("America/New_York")
    assert [format_instant(us, zone) for us in (early, late)] == [first, second]


@pytest.mark.parametrize(
    ("us", "said"),
    [(0, "0s"), (-5, "0s"), (59_999_999, "59s"), (60_000_000, "1m"), (3_599_999_999, "59m"),
     (3_600_000_000, "1h"), (86_399_999_999, "23h"), (86_400_000_000, "1d"), (9 * 86_400_000_000, "9d")],
)  # fmt: skip
def test_an_age_is_said_in_its_largest_whole_unit(us: int, said: str) -> None:
    assert format_age(us) == said
