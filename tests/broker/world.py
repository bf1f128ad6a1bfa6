"""Several brokers in one process: real logs on disks that forget, a toy controller, and a network that is a list.

Nothing happens by itself. A fetch is asked for by a follower, brought to its leader, answered, and brought back, each
when the test says so, or lost on the way. So is what leaders wish of the controller, what the controller decided, and
every flush. `settle_all` lets everything happen until nothing is left to do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from klamm.broker.answer import Answer, Later, Reply
from klamm.broker.broker import Broker
from klamm.broker.call import Call
from klamm.broker.replication import IsrAsk
from klamm.broker.speaker import Speaker
from klamm.broker.waiting import Waiter
from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.handlers import fetch, produce
from klamm.handlers.replica_messages import (
    ALTER_PARTITION_VERSION,
    FETCH_VERSION,
    alter_partition_request,
    fetch_request,
    take_alter_partition_response,
    take_fetch_response,
)
from klamm.ids import BrokerId, Now, Offset, TopicPartition
from klamm.log.files import File
from klamm.partition.fetching import FetchAsk
from klamm.partition.isr import IsrWish
from klamm.partition.partition import Partition
from klamm.records.batch import batches
from klamm.records.builder import BatchBuilder
from klamm.records.record import records_of
from klamm.sim.disk import Disk
from klamm.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionDataResponse,
    TopicDataResponse,
)
from klamm.wire.messages.fetch import FetchRequest, FetchResponse
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.toy_controller import TOPIC, TOPIC_ID, ToyController

ALL = -1
PRODUCE_VERSION = 13
assert FETCH_VERSION == 17 and ALTER_PARTITION_VERSION == 3, "what these tests stand for"


@dataclass
class Fetching:
    """A fetch on its way to the leader, waiting there, or answered and on its way back."""

    ask: FetchAsk
    request: FetchRequest
    sent: bool = False
    response: FetchResponse | None = None


class Member:
    """One broker of the world, in one life or the next."""

    def __init__(self, world: "World", broker_id: BrokerId) -> None:
        self.world = world
        self.id = broker_id
        self.disk = Disk()
        self.life = 0
        self.is_up = False
        self.seen = 0
        """How many of the controller's images it has followed."""
        self.fetching: dict[BrokerId, Fetching] = {}
        self.fetching_next: dict[BrokerId, Fetching] = {}
        """A second fetch that was sent after one that waits. Answers come in order."""
        self.asking: IsrAsk | None = None
        self.flushing: list[tuple[Partition, Any, list[File], Offset]] = []
        self.broker: Broker

    def start(self) -> None:
        """A new life, with the newest image, as a node that has caught up before it opens its logs."""
        self.life += 1
        self.is_up = True
        overrides = {"node.id": str(self.id), **self.world.settings}
        self.broker = Broker(
            BrokerConfig.from_properties([], overrides),
            self.disk,  # type: ignore[arg-type]
            Random(self.life),
            self.world.told.append,
        )
        self.broker.metadata_recovery_point = lambda: 0
        self.fetching, self.fetching_next, self.asking, self.flushing = {}, {}, None, []
        self.broker.image = self.world.controller.image
        self.seen = len(self.world.controller.images)
        self.broker.open(self.world.now, clean=False)
        self.settle()

    def kill(self) -> None:
        """What it wrote is there, flushed or not. Who fetches from it hears nothing more."""
        self.is_up = False
        for member in self.world.members.values():
            if self.id in member.fetching and member.is_up:
                member.lose_fetch(self.id)

    def lose_power(self, random: Random) -> None:
        self.kill()
        self.disk.crash(random)

    # One step, and what follows from it.

    def settle(self) -> None:
        broker, now = self.broker, self.world.now
        while True:
            if broker.grown:
                broker.settle_grown(now)
            broker.tell_followers()
            broker.slices.run_slice(now)
            released = broker.waiting.take_released()
            for waiter, in_time in released:
                waiter.deliver(now, in_time)
            if not released and not broker.grown and not broker.slices:
                break
        for partition in broker.unflushed.take(now):
            files, end = broker.files_to_flush(partition)
            self.flushing.append((partition, partition.log, files, end))
        for ask in broker.replication.take_fetches(now):
            waiting = self.fetching_next if ask.leader in self.fetching else self.fetching
            assert ask.leader not in waiting, "two fetches at most"
            waiting[ask.leader] = Fetching(ask, fetch_request(ask))
        if self.asking is None:
            self.asking = broker.replication.take_isr_wishes(now)

    def flush(self) -> None:
        for partition, log, files, end in self.flushing:
            self.disk.flush(files)  # type: ignore[arg-type]
            if partition.log is log:
                log.flushed(end)
                partition.note_grown()
        self.flushing = []
        self.settle()

    def follow_next(self) -> None:
        """Hear of the controller's next decision."""
        controller = self.world.controller
        image, changes = controller.images[self.seen], controller.changes[self.seen]
        self.seen += 1
        self.broker.follow(image, changes, self.world.now)
        self.settle()

    @property
    def is_behind(self) -> bool:
        return self.seen < len(self.world.controller.images)

    def follow_all(self) -> None:
        while self.is_behind:
            self.follow_next()

    def tick(self) -> None:
        self.broker.waiting.expire(self.world.now)
        self.broker.replication.tick(self.world.now)
        self.settle()

    # Asking.

    def ask(
        self, handle: Callable[[Any, Call], Answer], request: Any, version: int, then: Callable[[Any], None]
    ) -> None:
        """`then` is called with the answer, now or later. Replicas are believed: who asks is not what these tests
        are about."""
        state = getattr(request, "replica_state", None)
        speaker = None if state is None else Speaker(state.replica_id, b"", is_this_node=True)
        answer = handle(request, Call(self.broker, version, "test", 1, "test", self.world.now, speaker))
        if isinstance(answer, Reply):
            then(answer.response)
        else:
            assert isinstance(answer, Later)
            deliver = answer.then
            waiter = Waiter(answer, 1, lambda now, in_time: then(deliver(now, in_time)))
            self.broker.waiting.add(waiter, answer.deadline_ms)
        self.settle()

    def produce(
        self, *values: bytes, index: int = 0, acks: int = ALL, then: Callable[[Any], None] = lambda answer: None
    ) -> list[Any]:
        """The answer, as soon as it is there; `then` hears it too."""
        builder = BatchBuilder()
        for value in values:
            builder.append(None, value, self.world.now.wall_ms)
        data = TopicProduceData(
            topic_id=TOPIC_ID,
            partition_data=[PartitionProduceData(index=index, records=memoryview(builder.build()))],
        )
        answers: list[Any] = []

        def answered(response: Any) -> None:
            answers.append(response.responses[0].partition_responses[0])
            then(answers[0])

        request = ProduceRequest(acks=acks, timeout_ms=120_000, topic_data=[data])
        self.ask(produce.handle, request, PRODUCE_VERSION, answered)
        return answers

    # The way of a fetch, and of a wish.

    def bring_fetch(self, leader: BrokerId) -> None:
        """To the leader, which may let it wait."""
        fetching = self.fetching[leader]
        if fetching.sent:
            fetching = self.fetching_next[leader]
        other = self.world.members[leader]
        if not other.is_up:
            self.lose_fetch(leader)
            return
        assert not fetching.sent
        fetching.sent = True

        def answered(response: FetchResponse) -> None:
            for topic in response.responses:
                for data in topic.partitions:
                    # What is sent is what was in the log then.
                    data.records = memoryview(bytearray(bytes(data.records)))
            fetching.response = response

        other.ask(fetch.handle, fetching.request, FETCH_VERSION, answered)

    def bring_answer(self, leader: BrokerId) -> None:
        fetching = self.fetching.pop(leader)
        assert fetching.response is not None
        if leader in self.fetching_next:
            self.fetching[leader] = self.fetching_next.pop(leader)
        take_fetch_response(fetching.ask, fetching.response, self.broker, self.world.now)
        self.settle()

    def lose_fetch(self, leader: BrokerId) -> None:
        for among in (self.fetching, self.fetching_next):
            fetching = among.pop(leader, None)
            if fetching is not None:
                self.broker.replication.fetch_lost(fetching.ask, self.world.now)
        self.settle()

    def has_unsent_fetch(self, leader: BrokerId) -> bool:
        fetches = [fetches.get(leader) for fetches in (self.fetching, self.fetching_next)]
        return any(fetching is not None and not fetching.sent for fetching in fetches)

    def bring_wishes(self, *, lose_answer: bool = False) -> None:
        """To the controller and back."""
        assert self.asking is not None
        ask, self.asking = self.asking, None
        response = self.world.altered(self.id, alter_partition_request(ask))
        if lose_answer:
            self.broker.replication.isr_lost(ask, self.world.now)
        else:
            take_alter_partition_response(ask, response, self.broker, self.world.now)
        self.settle()

    def lose_wishes(self) -> None:
        assert self.asking is not None
        ask, self.asking = self.asking, None
        self.broker.replication.isr_lost(ask, self.world.now)
        self.settle()

    def partition(self, index: int = 0) -> Partition:
        found = self.broker.partitions.get(TOPIC, index)
        assert found is not None
        return found

    def records(self, index: int = 0) -> list[tuple[Offset, int, bytes]]:
        """Offset, leader epoch and value of everything in the log."""
        partition = self.broker.partitions.get(TOPIC, index)
        return [] if partition is None else records_in(partition)


class World:
    def __init__(self, brokers: int = 3, **settings: str) -> None:
        """Settings are given with underscores for dots."""
        self.settings = {key.replace("_", "."): text for key, text in settings.items()}
        self.now = Now(1_000.0, 1_700_000_000_000)
        self.told: list[Fact] = []
        self.controller = ToyController()
        self.members = {number: Member(self, number) for number in range(brokers)}
        for number in self.members:
            self.controller.register(number, rack=f"rack-{number}")
        for number in self.members:
            self.controller.unfence(number)
        for member in self.members.values():
            member.start()

    def __getitem__(self, broker_id: BrokerId) -> Member:
        return self.members[broker_id]

    @property
    def up(self) -> list[Member]:
        return [member for member in self.members.values() if member.is_up]

    def create_topic(self, *placement: list[BrokerId], **configs: str) -> None:
        self.controller.create_topic(list(placement), **configs)
        self.follow_all()

    def follow_all(self) -> None:
        for member in self.up:
            member.follow_all()

    def advance(self, milliseconds: float) -> None:
        self.now = Now(self.now.monotonic_ms + milliseconds, self.now.wall_ms + int(milliseconds))
        for member in self.up:
            member.tick()

    def restart(self, broker_id: BrokerId) -> None:
        """The controller fences its last life, and counts on the new one when it is there."""
        self.controller.fence(broker_id)
        self.controller.register(broker_id, rack=f"rack-{broker_id}")
        self.members[broker_id].start()
        self.controller.unfence(broker_id)

    def settle_all(self, *, deaf: frozenset[BrokerId] = frozenset()) -> None:
        """Until nothing is left that could happen now, without time passing. Nothing reaches or leaves the deaf."""
        for _ in range(10_000):
            if not any(self._something_happens(member) for member in self.up if member.id not in deaf):
                return
        raise AssertionError("it goes on for ever")

    def _something_happens(self, member: Member) -> bool:
        if member.is_behind:
            member.follow_next()
        elif member.flushing:
            member.flush()
        elif member.asking is not None:
            member.bring_wishes()
        else:
            for leader, fetching in list(member.fetching.items()):
                if fetching.response is not None:
                    member.bring_answer(leader)
                    return True
                if member.has_unsent_fetch(leader):
                    member.bring_fetch(leader)
                    return True
            due_ms = member.broker.replication.next_deadline_ms
            if due_ms is None or due_ms > self.now.monotonic_ms:
                return False
            member.tick()
        return True

    def altered(self, leader: BrokerId, request: AlterPartitionRequest) -> AlterPartitionResponse:
        topics = []
        for topic in request.topics:
            answers = []
            for data in topic.partitions:
                wish = IsrWish(
                    topic.topic_id,
                    TopicPartition(TOPIC, data.partition_index),
                    data.leader_epoch,
                    data.partition_epoch,
                    tuple((each.broker_id, each.broker_epoch) for each in data.new_isr_with_epochs),
                )
                outcome = self.controller.alter_partition(leader, wish)
                answers.append(
                    PartitionDataResponse(
                        partition_index=outcome.index,
                        error_code=outcome.error,
                        leader_id=leader,
                        leader_epoch=outcome.leader_epoch,
                        isr=list(outcome.isr),
                        partition_epoch=outcome.partition_epoch,
                    )
                )
            topics.append(TopicDataResponse(topic_id=topic.topic_id, partitions=answers))
        return AlterPartitionResponse(topics=topics)


def records_in(partition: Partition) -> list[tuple[Offset, int, bytes]]:
    log = partition.log
    found = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, 1 << 30, log.end_offset)
        data = bytes(part)
        for position, batch in batches(memoryview(data)):
            for record in records_of(memoryview(data)[position : position + batch.size_bytes]):
                value = bytes(record.value or b"")
                if record.offset >= log.start_offset:
                    found.append((record.offset, batch.leader_epoch, value))
        offset = part.next_offset
    return found
