"""Words become offsets: durations, times with and without a zone, targets brought into their logs, files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.cli.group_asking import Refused
from klamm.cli.options import Misused
from klamm.cli.reset_targets import (
    Move,
    chosen_partitions,
    csv_of,
    duration_ms_of,
    in_range,
    listed,
    moves,
    plan_of,
    shifted,
    time_ms_of,
    warnings,
)
from klamm.ids import TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P1D", 86_400_000),
        ("P1DT2H", 93_600_000),
        ("PT30M", 1_800_000),
        ("PT0.25S", 250),
        ("PT1,5S", 1_500),
        ("P2W", 1_209_600_000),
        ("pt1h1m1s", 3_661_000),
        ("P0D", 0),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms_of(text) == ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "1D", "P1H", "PT1D", "P1Y", "P1M", "P-1D", "-P1D", "P1DT", "PT1.S", "P1D2H"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Misused, match="P1DT2H"):
        duration_ms_of(text)


@given(*(st.integers(0, 10_000) for _ in range(4)), st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, seconds: int, ms: int) -> None:
    naive = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + ms
    assert duration_ms_of(f"P{days}DT{hours}H{minutes}M{seconds}.{ms:03}S") == naive


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-02", 86_400_000),
        ("2026-11-16T06:30", 1_794_810_600_000),
        ("2026-11-16T06:30:00.000", 1_794_810_600_000),
        ("2026-11-16T06:30:00.250Z", 1_794_810_600_250),
        ("2026-11-16T08:30+02:00", 1_794_810_600_000),
        ("2026-11-16T01:00:00-0530", 1_794_810_600_000),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_times(text: str, ms: int) -> None:
    assert time_ms_of(text) == ms


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00", "2026-11-16T25:00", "1794810600000"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Misused, match="UTC if no zone"):
        time_ms_of(text)


@given(st.integers(-50, 150), st.integers(0, 100), st.integers(0, 100))
def test_in_range_is_the_nearest_offset_of_the_log(offset: int, one: int, other: int) -> None:
    start, end = sorted((one, other))
    assert in_range(offset, start, end) == min(range(start, end + 1), key=lambda each: abs(each - offset))


def test_moves_say_where_from_where_to_and_what_was_wanted() -> None:
    starts, ends = {T0: 5, T1: 0, T2: 0}, {T0: 10, T1: 10, T2: 0}
    planned = moves({T2: 3, T0: 3, T1: 3}, {T0: 7}, starts, ends)
    assert planned == [Move(T0, 7, 5, 3), Move(T1, None, 3, 3), Move(T2, None, 0, 3)]
    assert [each.change for each in planned] == [-2, None, None]
    assert warnings(planned) == [
        "t-0: offset 3 is before the beginning of the log, 5 is taken instead",
        "t-2: offset 3 is beyond the end of the log, 0 is taken instead",
    ]
    assert csv_of(planned) == "t,0,5\nt,1,3\nt,2,0"


def test_only_what_is_committed_can_be_shifted() -> None:
    assert shifted([T0, T1], {T0: 5, T1: 1, T2: 9}, -2) == {T0: 3, T1: -1}
    with pytest.raises(Refused, match="nothing is committed for t-1"):
        shifted([T0, T1], {T0: 5}, 1)


def test_topics_with_and_without_partitions() -> None:
    assert chosen_partitions("--topic", ["a", "b:0", "b:3, 2"]) == {"a": None, "b": {0, 2, 3}}
    assert chosen_partitions("--topic", ["a:1", "a"]) == chosen_partitions("--topic", ["a", "a:1"]) == {"a": None}


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:x", "a:1,", "a:-1", "a:1:2", "a:²"])
def test_a_choice_that_is_none(text: str) -> None:
    with pytest.raises(Misused, match="TOPIC:PARTITION"):
        chosen_partitions("--topic", [text])


def test_a_plan_of_one_group_or_of_several() -> None:
    assert plan_of("g", ["t,0,5", "", " t , 1 , 6 "], "f.csv") == {T0: 5, T1: 6}
    assert plan_of("g", ["g,t,0,5", "h,t,1,6", '"g","t",2,7'], "f.csv") == {T0: 5, T2: 7}


@pytest.mark.parametrize("line", ["t,0", "t,0,-1", "t,x,1", "t,0,1.5", ",0,1", "g,t,0,5,6", "topic,partition,offset"])
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(Misused, match=r"f\.csv, line 2: expected topic,partition,offset"):
        plan_of("g", ["t,0,1", line], "f.csv")


def test_a_plan_without_a_line_for_the_group() -> None:
    with pytest.raises(Misused, match=r"f\.csv has no line for group 'g'"):
        plan_of("g", ["h,t,0,1"], "f.csv")


def test_long_lists_are_cut() -> None:
    assert listed([T0, T1]) == "t-0, t-1"
    assert listed([T0, T1, T2], at_most=1) == "t-0 and 2 more"
