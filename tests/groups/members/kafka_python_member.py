"""A member by kafka-python: classic only. Its listener must not block, so it commits between polls only.

What it gets back in a rebalance it reads on where it was, not where it has committed. So what is not committed of that
stays to be committed; only what is lost, or goes to somebody else, is forgotten.
"""

from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.groups.members.telling import Going, Handled, asked, tell

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, handled: Handled, is_cooperative: bool) -> None:
        self._handled = handled
        self._is_cooperative = is_cooperative
        """Then it is told of what comes and what goes, else of all that it has."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        partitions = [place.partition for place in assigned]
        if not self._is_cooperative:
            self._handled.forget_all_but(partitions)
        tell("assigned", partitions=partitions)

    def on_partitions_revoked(self, revoked: Any) -> None:
        if self._is_cooperative:
            self._handled.forget(place.partition for place in revoked)
        tell("revoked", partitions=[place.partition for place in revoked])

    def on_partitions_lost(self, lost: Any) -> None:
        self._handled.forget(place.partition for place in lost)
        tell("lost", partitions=[place.partition for place in lost])


def main() -> None:
    wish, going = asked(), Going()
    handled = Handled(wish.commit_every_ms)
    consumer = KafkaConsumer(
        bootstrap_servers=wish.bootstrap.split(","),
        group_id=wish.group,
        client_id=wish.client_id,
        group_instance_id=wish.instance,
        partition_assignment_strategy=(ASSIGNORS[wish.assignor],),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=wish.session_ms,
        heartbeat_interval_ms=200,
        fetch_max_wait_ms=100,
        metadata_max_age_ms=2000,
        reconnect_backoff_max_ms=500,
    )

    def commit() -> None:
        offsets = dict(handled.uncommitted)
        if not offsets:
            return
        try:
            places = {TopicPartition(wish.topic, number): offset for number, offset in offsets.items()}
            consumer.commit({place: OffsetAndMetadata(offset, "", -1) for place, offset in places.items()})
            handled.committed(offsets)
        except KafkaError as error:
            handled.put_off(repr(error))

    tell("started")
    consumer.subscribe([wish.topic], listener=Listener(handled, wish.assignor == "cooperative-sticky"))
    while not going.now:
        polled = consumer.poll(timeout_ms=100, max_records=200)
        handled.handle((message.partition, message.offset) for messages in polled.values() for message in messages)
        if handled.is_due():
            commit()
    commit()
    consumer.close()
    tell("closed")


if __name__ == "__main__":
    main()
