"""Reading through librdkafka: what its silence means."""

import pytest

from klamm.pipeline.kafka.librdkafka import LibrdkafkaAccess
from klamm.pipeline.kafka.problems import NoAnswer
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings, addresses
from klamm.pipeline.source.problems import DataLost
from klamm.pipeline.source.reading import read
from tests.pipeline.source.topics import Topics

QUICK = {"first_patience_seconds": 0.3, "patience_seconds": 0.3}


@pytest.mark.parametrize("fails", [True, False])
def test_nobody_there_is_no_loss(fails: bool) -> None:
    """Whoever skips records because brokers were away for a while has lost them for nothing."""
    access = LibrdkafkaAccess(ClusterSettings(addresses("127.0.0.1:1"), **QUICK))  # type: ignore[arg-type]
    with pytest.raises(NoAnswer):
        list(read(access, Range("t", 0, 0, 10), False, fails))


def test_a_log_that_is_shorter_is_a_loss(topics: Topics) -> None:
    topics.create("shorter")
    topics.write("shorter", 0, [b"a", b"b"])
    settings = ClusterSettings(addresses(topics.bootstrap_servers), first_patience_seconds=10, patience_seconds=1)
    with pytest.raises(DataLost, match=r"shorter-0 offsets 2 to 4 .the log is shorter"):
        list(read(LibrdkafkaAccess(settings), Range("shorter", 0, 0, 5), False, True))
