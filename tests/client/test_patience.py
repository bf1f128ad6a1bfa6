"""Patience ends with the first partition that stands still, and only when it was heard to."""

import json
from collections.abc import Callable

import pytest

from klamm.client.patience import Patience


def told(*, are_queued: bool = True, gone: int = 0, **waiting: tuple[int, int]) -> str:
    """Of each partition: how many records were not acknowledged, and the last that was. So many of them are `gone`:
    they have failed, or to another partition, and the client does not hold them any more."""
    partitions = {
        number: {
            "acked_msgid": acknowledged,
            "msgs": acknowledged + left,
            "msgq_cnt": 0,
            "xmit_msgq_cnt": left if are_queued else 0,
            "msgs_inflight": 0,
        }
        for number, (left, acknowledged) in waiting.items()
    }
    held = sum(left for left, _ in waiting.values()) - gone
    return json.dumps({"msg_cnt": held, "topics": {"t": {"partitions": partitions}}})


@pytest.fixture
def patience() -> Patience:
    return Patience(10.0)


@pytest.fixture
def hear(patience: Patience) -> Callable[[str], None]:
    heard = patience.settings["stats_cb"]
    assert callable(heard)
    return heard


def test_one_partition_that_stands_still_is_enough(patience: Patience, hear: Callable[[str], None]) -> None:
    assert not patience.is_over(0.0), "nothing was heard"
    for second in range(11):
        hear(told(p0=(5, second), p1=(1, 7)))
        assert not patience.is_over(second)
    hear(told(p0=(5, 11), p1=(1, 7)))
    assert patience.is_over(11.0)


def test_it_is_known_how_long_the_one_that_waits_longest_has_waited(
    patience: Patience, hear: Callable[[str], None]
) -> None:
    for second in range(6):
        hear(told(p0=(5, second), p1=(1, 7 + (second > 1))))
        assert not patience.is_over(second)
        assert patience.silent_seconds == [0, 1, 0, 1, 2, 3][second]
    hear(told(p0=(0, 11), p1=(0, 9)))
    assert not patience.is_over(6.0) and patience.silent_seconds == 0.0


def test_what_waits_to_be_sent_again_waits(patience: Patience, hear: Callable[[str], None]) -> None:
    """It is in none of its partition's queues: two lines that a broker did not take were tried for ever."""
    for second in range(11):
        hear(told(p0=(2, 3), p1=(0, 7), are_queued=second % 2 == 0))
        assert not patience.is_over(second)
    hear(told(p0=(2, 3), p1=(0, 7), are_queued=False))
    assert patience.is_over(11.0)


def test_what_has_failed_is_not_waited_for(patience: Patience, hear: Callable[[str], None]) -> None:
    """Nor what has left the place where records are as long as nobody knows the partitions: both are counted there."""
    patience.note_failed("t", 0)
    for second in range(20):
        hear(told(are_queued=False, gone=301, **{"0": (1, 3), "-1": (300, 0), "1": (2, second)}))
        assert not patience.is_over(second)
    for second in range(20, 60):
        hear(told(are_queued=False, gone=301, **{"0": (1, 3), "-1": (300, 0)}))
        assert not patience.is_over(second), "nothing is held"


def test_where_one_has_failed_others_are_waited_for(patience: Patience, hear: Callable[[str], None]) -> None:
    """A single record that was too large, and its partition was waited for without end: others acknowledged."""
    patience.note_failed("t", 0)
    for second in range(11):
        hear(told(are_queued=False, gone=1, **{"0": (1 + 1, 3), "1": (2, second)}))
        assert not patience.is_over(second)
    hear(told(are_queued=False, gone=1, **{"0": (1 + 1, 3), "1": (2, 11)}))
    assert patience.is_over(11.0)


def test_where_one_failed_before_others_were_acknowledged(patience: Patience, hear: Callable[[str], None]) -> None:
    """It cannot be told from one that waits; that something waits can."""
    patience.note_failed("t", 0)
    for second in range(11):
        hear(told(are_queued=False, **{"0": (1, 4)}))
        assert not patience.is_over(second)
    hear(told(are_queued=False, **{"0": (1, 4)}))
    assert patience.is_over(11.0)


def test_whoever_has_nothing_to_wait_for_is_patient(patience: Patience, hear: Callable[[str], None]) -> None:
    hear(told(p0=(1, 3)))
    assert not patience.is_over(0.0)
    hear(told(p0=(0, 4)))
    assert not patience.is_over(60.0)
    hear(told(p0=(1, 4)))
    assert not patience.is_over(120.0), "it has just been sent"
    for second in range(121, 131):
        hear(told(p0=(1, 4)))
        assert not patience.is_over(second)
    hear(told(p0=(1, 4)))
    assert patience.is_over(131.0)


def test_whoever_looks_late_has_not_heard_silence(patience: Patience, hear: Callable[[str], None]) -> None:
    """It was stopped for five seconds, and gave up 250,000 records of a cluster that was well."""
    for now in (0.0, 1.0, 2.0, 3.0, 60.0, 61.0):
        hear(told(p0=(1, 3)))
        assert not patience.is_over(now)
    for now in (62.0, 63.0, 64.0, 65.0, 66.0):
        assert not patience.is_over(now), "nothing new was heard"
    hear(told(p0=(1, 3)))
    assert patience.is_over(67.0), "it has looked for more than ten seconds"
