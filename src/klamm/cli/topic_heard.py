"""What is seen of a change once it was made: a broker hears of it a moment later than the controller has decided it."""

import time
from collections.abc import Callable, Mapping, Sequence

from klamm.cli.group_asking import Cluster
from klamm.ids import TopicPartition
from klamm.local.view import PartitionSeen

HEARD_SECONDS = 10.0
PAUSE_SECONDS = 0.05


def partitions_once(
    cluster: Cluster, topics: Sequence[str], is_heard: Callable[[Mapping[TopicPartition, PartitionSeen]], bool]
) -> Mapping[TopicPartition, PartitionSeen]:
    """Those of these topics, or of all, as soon as the broker that we ask has heard of a change; or after some seconds
    as it has them then."""
    deadline = time.monotonic() + HEARD_SECONDS
    while True:
        now = {TopicPartition(each.topic, each.partition): each for each in cluster.seen(topics or None).partitions}
        if is_heard(now) or time.monotonic() > deadline:
            return now
        time.sleep(PAUSE_SECONDS)
