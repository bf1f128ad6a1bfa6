"""The checkpoint's JSON: like the connector's, and yet nobody takes one for the other."""

import json

import pytest

from klamm.ids import TopicPartition
from klamm.pipeline.source.position import Position, as_json, check_cluster, from_json, said_in
from klamm.pipeline.source.problems import WrongCheckpoint

POSITION = Position("home", {"b": "B", "a": "A"}, {TopicPartition("b", 10): 3, TopicPartition("b", 2): 1})


def test_equal_positions_are_written_alike() -> None:
    other = Position("home", {"a": "A", "b": "B"}, dict(reversed(POSITION.offsets.items())))
    written = json.dumps(as_json(POSITION))
    assert written == json.dumps(as_json(other))
    assert written == (
        '{"b": {"2": 1, "10": 3}, "_klamm": {"format": 1, "cluster": "home", "topics": {"a": "A", "b": "B"}}}'
    )


def test_what_is_written_can_be_read() -> None:
    began = Position("home", {}, {TopicPartition("a", 0): 1}, is_initial=True, began={TopicPartition("a", 0): 0})
    for position in (POSITION, began):
        read = from_json(json.loads(json.dumps(as_json(position))))
        assert read == position and read.began == position.began


def test_a_checkpoint_of_the_connector_is_refused() -> None:
    with pytest.raises(WrongCheckpoint, match=r"Kafka connector .* checkpoint location of its own"):
        from_json({"orders": {"0": 23}})


def test_the_connector_cannot_read_ours() -> None:
    """It reads a map of topics to maps of partition numbers to offsets; `format` is no number."""
    with pytest.raises(ValueError, match="format"):
        _ = {int(partition) for values in as_json(POSITION).values() for partition in values}


def test_a_checkpoint_of_the_future_is_refused() -> None:
    with pytest.raises(WrongCheckpoint, match="format 2"):
        from_json({"_klamm": {"format": 2}})


def test_a_checkpoint_of_another_cluster_is_refused() -> None:
    check_cluster(POSITION, "home")
    with pytest.raises(WrongCheckpoint, match=r"written for home, and kafka.bootstrap.servers leads to away"):
        check_cluster(POSITION, "away")


def test_reports_of_other_sources_say_nothing() -> None:
    said = {"t": {"0": 1}, "_klamm": {"format": 1, "said": ["lost"]}}
    others = [None, "{}", "5", "not JSON", '{"_klamm": 3}', {"t": {"0": 1}}]
    for ours in (said, json.dumps(said)):
        report = {"sources": [{}, *({"latestOffset": other} for other in others), {"latestOffset": ours}]}
        assert said_in(report) == ["lost"] and said_in({}) == []
