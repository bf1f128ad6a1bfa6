"""A member by aiokafka: classic only, and eager. The coordinator works beside the reader, in one loop.

What is not awaited cannot be interrupted: a batch is handled between two awaits, so it is handled while its partition
is ours.
"""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import IllegalStateError, KafkaError

from tests.groups.members.telling import Going, Handled, asked, tell

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Member(ConsumerRebalanceListener):
    def __init__(self, wish: Any) -> None:
        self._topic = wish.topic
        self._handled = Handled(wish.commit_every_ms)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=wish.bootstrap,
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
        )

    async def run(self, going: Going) -> None:
        tell("started")
        self._consumer.subscribe([self._topic], listener=self)
        await self._consumer.start()
        while not going.now:
            polled = await self._consumer.getmany(timeout_ms=100, max_records=200)
            self._handled.handle((each.partition, each.offset) for messages in polled.values() for each in messages)
            if self._handled.is_due():
                await self._commit()
        await self._commit()
        await self._consumer.stop()
        tell("closed")

    async def on_partitions_assigned(self, assigned: Any) -> None:
        tell("assigned", partitions=[place.partition for place in assigned])

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self._commit()
        self._handled.uncommitted.clear()
        if revoked:
            tell("revoked", partitions=[place.partition for place in revoked])

    async def _commit(self) -> None:
        offsets = dict(self._handled.uncommitted)
        if not offsets:
            return
        try:
            await self._consumer.commit({TopicPartition(self._topic, number): at for number, at in offsets.items()})
            self._handled.committed(offsets)
        except (KafkaError, IllegalStateError) as error:
            self._handled.refused(repr(error))


async def main() -> None:
    await Member(asked()).run(Going())


if __name__ == "__main__":
    asyncio.run(main())
