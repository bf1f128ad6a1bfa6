"""What a query asks before it plans: topics that are not there yet, and logs that seem to shrink."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.pipeline.kafka.cluster import ClusterSeen, TopicSeen
from klamm.pipeline.kafka.offsets import EARLIEST, LATEST
from klamm.pipeline.kafka.problems import ClusterProblem
from klamm.pipeline.source.options import stream_options
from klamm.pipeline.source.position import Position
from klamm.pipeline.source.problems import WrongOption
from klamm.pipeline.source.standing import Asking

KEY = TopicPartition("orders", 0)
ID = "AQEBAQEBAQEBAQEBAQEBAQ"


@dataclass
class Changing:
    """A cluster whose answers change from one question to the next; the last one stays."""

    topics: list[Sequence[str]]
    latest: list[int] = field(default_factory=lambda: [10])
    internal: str = "__offsets"

    def look(self, wanted: Sequence[str] | None) -> ClusterSeen:
        there = self.topics.pop(0) if len(self.topics) > 1 else self.topics[0]
        seen = {name: TopicSeen(name, b"\1" * 16, {0: 1}, name == self.internal) for name in there}
        missing = {name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for name in wanted or () if name not in there}
        return ClusterSeen("home", {}, seen, missing)

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        latest = self.latest[0]
        if LATEST in wanted.values() and len(self.latest) > 1:
            self.latest.pop(0)
        return {key: 2 if when == EARLIEST else latest for key, when in wanted.items()}

    def rows(self, *_: object) -> None: ...

    def write_down(self, *_: object) -> None: ...

    def close(self) -> None: ...


def asking(cluster: Changing, pauses: list[float] | None = None, **options: str) -> Asking:
    given = {"kafka.bootstrap.servers": "one:1", **(options or {"subscribe": "orders"})}
    sleep = (pauses if pauses is not None else []).append
    return Asking(stream_options(given), cluster, sleep)  # type: ignore[arg-type]


def test_a_new_topic_takes_a_moment_to_be_known() -> None:
    pauses: list[float] = []
    now = asking(Changing([[], [], ["orders"]]), pauses).standing()
    assert (now.cluster, now.earliest, now.latest, pauses) == ("home", {KEY: 2}, {KEY: 10}, [1.0, 1.0])
    assert now.topics == {"orders": ID}


def test_a_topic_that_never_comes() -> None:
    with pytest.raises(ClusterProblem, match="no topic orders"):
        asking(Changing([[]])).standing()
    assert asking(Changing([[]])).standing(may_be_missing=True).latest == {}


def at(offset: int, topic_id: str = ID, is_initial: bool = False) -> Position:
    return Position("home", {"orders": topic_id}, {KEY: offset}, is_initial)


def test_a_log_that_seems_to_shrink_is_asked_again() -> None:
    pauses: list[float] = []
    assert asking(Changing([["orders"]], [5, 10]), pauses).standing_after(at(8)).latest == {KEY: 10}
    assert asking(Changing([["orders"]], [5]), pauses).standing_after(at(8)).latest == {KEY: 5}
    assert pauses == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("options", [{"subscribe": "orders"}, {"subscribePattern": "ord.*"}])
def test_a_topic_that_one_answer_lacks_is_not_lost(options: dict[str, str]) -> None:
    """With failOnDataLoss=false the stream would forget where it stands in it, and read it all again."""
    pauses: list[float] = []
    now = asking(Changing([["orders"], [], ["orders"]]), pauses, **options)
    assert now.standing_after(at(8)).latest == now.standing_after(at(8)).latest == {KEY: 10}
    assert pauses == [1.0]
    assert asking(Changing([[]]), pauses).standing_after(at(8)).latest == {}


def test_what_the_position_does_not_know_is_not_waited_for() -> None:
    pauses: list[float] = []
    assert asking(Changing([[]]), pauses).standing_after(Position("home", {}, {})).latest == {}
    assert not pauses


def test_a_topic_that_seems_to_be_another_is_asked_again() -> None:
    pauses: list[float] = []
    asking(Changing([["orders"]]), pauses).standing_after(at(8, "another"))
    assert pauses == [1.0, 1.0]


def test_a_pattern_is_found_anywhere_in_a_name_but_not_in_internal_ones() -> None:
    cluster = Changing([["my-orders-eu", "orders", "__offsets", "other"]])
    found = asking(cluster, subscribePattern="orders|offsets").standing().latest
    assert {key.topic for key in found} == {"my-orders-eu", "orders"}


def test_partitions_that_are_not_there_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """As the connector does, which does not even warn."""
    found = asking(Changing([["orders"]]), assign='{"orders": [0, 7]}').standing().latest
    assert [str(key) for key in found] == ["orders-0"]
    assert "no partition orders-7" in caplog.text


def test_a_topic_with_our_name_in_the_checkpoint() -> None:
    with pytest.raises(WrongOption, match="_klamm cannot be read"):
        asking(Changing([["_klamm"]]), subscribe="_klamm").standing()
