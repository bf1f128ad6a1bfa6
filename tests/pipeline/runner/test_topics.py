"""Topics that are read have to be there; topics that are written are made like their source."""

from typing import Any

import pytest

from klamm.pipeline import Pipeline, Source, Topic
from klamm.pipeline.problems import PipelineError
from klamm.pipeline.topics import Cluster, NewTopic, NoCluster, NoTopic, missing, seen


def rows(orders: Any) -> Any:
    return orders


PIPELINE = Pipeline(name="shop", sources=[Source("orders", json="id string")], outputs=[Topic("big", rows)])


def test_what_is_missing_is_made_like_the_source() -> None:
    cluster = Cluster("id", 5, {"orders": 10, "__consumer_offsets": 50})
    assert missing(PIPELINE, cluster) == [NewTopic("big", 10, 3), NewTopic("orders.quarantine", 10, 3)]
    assert missing(PIPELINE, Cluster("id", 1, {"orders": 4, "big": 1})) == [NewTopic("orders.quarantine", 4, 1)]


def test_a_topic_that_is_read_and_not_there() -> None:
    with pytest.raises(
        NoTopic, match=r"Did you mean `order`.*klamm topic create orders --partitions 10 --replication 2"
    ):
        missing(PIPELINE, Cluster("id", 2, {"order": 1}))


def test_a_setting_that_there_is_not() -> None:
    with pytest.raises(PipelineError, match=r"colour.*--kafka"):
        seen("127.0.0.1:1", {"colour": "blue"})


def test_nobody_answers() -> None:
    with pytest.raises(NoCluster, match=r"no broker answers at 127.0.0.1:1 .*klamm up --detach.*--bootstrap"):
        seen("127.0.0.1:1", {}, seconds=2.0)
