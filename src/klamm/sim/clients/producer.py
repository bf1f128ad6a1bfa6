"""A producer: plain or idempotent, with acks 0, 1 or all, one or five batches in flight.

It retries as real ones do: the same batch with the same sequence, in order, to whoever leads by then. A batch whose
time is up is given up; an idempotent producer then begins anew with another producer id, because nobody knows what
became of those that were under way, and never sends them again. So nothing of it may ever be doubled.
"""

from collections import deque
from dataclasses import dataclass
from functools import partial

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId, Uuid
from klamm.records.builder import BatchBuilder
from klamm.sim.clients.client import Client, Desk
from klamm.sim.clients.history import Fate, History, Written
from klamm.sim.machine import WALL_MS
from klamm.sim.topics import WITH_KEYS
from klamm.wire.apis import INIT_PRODUCER_ID, PRODUCE
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

INIT_VERSION = 4
FIRST_VERSION_BY_ID = 13
DELIVERY_MS = 15_000.0
MOST_QUEUED = 20
KEYS = 8
"""So few that records are superseded soon."""

TOPIC_IS_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})
BEGIN_ANEW = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH})


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    topics: tuple[str, ...]
    acks: int
    is_idempotent: bool
    most_in_flight: int
    version: int
    pause_ms: float
    """Between two batches, on average."""


class OutgoingBatch:
    __slots__ = ("base_sequence", "deadline_ms", "records", "was_sent")

    def __init__(self, records: list[Written], deadline_ms: float, base_sequence: int) -> None:
        self.records = records
        self.deadline_ms = deadline_ms
        self.base_sequence = base_sequence
        self.was_sent = False


class Lane:
    """One partition of one topic: batches that wait, in order, and those under way."""

    def __init__(self, topic: str, topic_id: Uuid, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.waiting: deque[OutgoingBatch] = deque()
        self.under_way: list[OutgoingBatch] = []
        self.next_sequence = 0
        self.count = 0
        self.rests = False
        """After an error it waits a moment."""


class Producer(Client):
    def __init__(self, desk: Desk, settings: ProducerSettings, history: History) -> None:
        super().__init__(desk)
        self.settings = settings
        self.is_writing = True
        self.acknowledged = 0
        self._history = history
        self._lanes: dict[tuple[Uuid, int], Lane] = {}
        self._producer_id = -1
        self._producer_epoch = -1
        self._generation = 0
        """How often it began anew; answers to an earlier generation are not ours any more."""
        self._is_beginning = False
        self._counts = 0
        self._keys = desk.world.chance(f"keys of {desk.name}")

    def begin(self) -> None:
        self.refresh(list(self.settings.topics), self._began)
        self._write()

    def stop_writing(self) -> None:
        """What waits is still delivered."""
        self.is_writing = False

    @property
    def is_done(self) -> bool:
        return not any(lane.waiting or lane.under_way for lane in self._lanes.values())

    def _began(self) -> None:
        if self.settings.is_idempotent and self._producer_id < 0:
            self._take_producer_id()
        self._keep_fresh()

    def _keep_fresh(self) -> None:
        self.later(self.chance.uniform(2_000.0, 4_000.0), lambda: self.refresh(self._names, self._keep_fresh))

    @property
    def _names(self) -> list[str]:
        return list(self.settings.topics)

    # Writing.

    def _write(self) -> None:
        if not self.is_writing:
            return
        self.later(self.chance.expovariate(1.0 / self.settings.pause_ms), self._write)
        topic = self.chance.choice(self.settings.topics)
        known = self.topics.get(topic)
        if known is None or not known.partitions or (self.settings.is_idempotent and self._producer_id < 0):
            return
        index = self.chance.choice(sorted(known.partitions))
        lane = self._lane(topic, known.topic_id, index)
        if len(lane.waiting) + len(lane.under_way) >= MOST_QUEUED:
            return
        records = [self._record(lane) for _ in range(self.chance.choice((1, 1, 1, 2, 3)))]
        batch = OutgoingBatch(records, self.world.now_ms + DELIVERY_MS, lane.next_sequence)
        if self.settings.is_idempotent:
            lane.next_sequence += len(records)
        lane.waiting.append(batch)
        self._pump(lane)

    def _record(self, lane: Lane) -> Written:
        value = f"{self.name}/{self._counts}".encode()
        self._counts += 1
        key = (lane.topic_id, lane.index)
        # Order is promised to one identity: what an earlier one had under way may arrive after what this one sends.
        sender = f"{self.name} for the {self._generation}. time"
        record = Written(value, sender, lane.count, key, self.settings.acks, self.settings.is_idempotent)
        record.made_ms = self.world.now_ms
        if lane.topic in WITH_KEYS:
            record.record_key = b"key-%d" % self._keys.randrange(KEYS)
            record.is_tombstone = self._keys.random() < 0.1
        lane.count += 1
        self._history.sent(record)
        return record

    def _lane(self, topic: str, topic_id: Uuid, index: int) -> Lane:
        lane = self._lanes.get((topic_id, index))
        if lane is None:
            lane = self._lanes[topic_id, index] = Lane(topic, topic_id, index)
        return lane

    # Sending.

    def _pump(self, lane: Lane) -> None:
        self._drop_late(lane)
        while lane.waiting and not lane.rests and len(lane.under_way) < self.settings.most_in_flight:
            known = self.topics.get(lane.topic)
            leader = self.leader_of(lane.topic, lane.index)
            if known is None or known.topic_id != lane.topic_id or leader == NO_BROKER or leader not in self.brokers:
                self._rest(lane)
                return
            batch = lane.waiting.popleft()
            batch.was_sent = True
            self._send_batch(lane, batch, leader)

    def _send_batch(self, lane: Lane, batch: OutgoingBatch, leader: BrokerId) -> None:
        settings = self.settings
        builder = BatchBuilder(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=batch.base_sequence if settings.is_idempotent else -1,
        )
        for record in batch.records:
            timestamp = WALL_MS + int(self.world.now_ms)
            if record.is_tombstone:
                builder.append(record.record_key, None, timestamp, [("name", record.value)])
            else:
                builder.append(record.record_key, record.value, timestamp)
        data = TopicProduceData(partition_data=[PartitionProduceData(index=lane.index, records=builder.build())])
        if settings.version >= FIRST_VERSION_BY_ID:
            data.topic_id = lane.topic_id
        else:
            data.name = lane.topic
        request = ProduceRequest(acks=settings.acks, timeout_ms=2_000, topic_data=[data])
        if settings.acks == 0:
            self.say(leader, PRODUCE, settings.version, request)
            return
        lane.under_way.append(batch)
        self.ask(leader, PRODUCE, settings.version, request, partial(self._answered, lane, batch, self._generation))

    def _answered(self, lane: Lane, batch: OutgoingBatch, generation: int, answer: ProduceResponse | None) -> None:
        if generation != self._generation or batch not in lane.under_way:
            return
        is_first = lane.under_way[0] is batch
        lane.under_way.remove(batch)
        if answer is None:
            self._try_again(lane, batch)
            return
        part = answer.responses[0].partition_responses[0]
        code = ErrorCode(part.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.acknowledged += len(batch.records)
            for number, record in enumerate(batch.records):
                offset = part.base_offset + number if code is ErrorCode.NONE and part.base_offset >= 0 else -1
                self._history.was_acknowledged(record, offset)
            self._pump(lane)
        elif code in TOPIC_IS_GONE:
            self._abandon(lane)
        elif code in BEGIN_ANEW or (code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and is_first):
            self._begin_anew()
        else:
            self._try_again(lane, batch)

    def _try_again(self, lane: Lane, batch: OutgoingBatch) -> None:
        lane.waiting.append(batch)
        # In the order of their sequences, or of their first sending.
        lane.waiting = deque(sorted(lane.waiting, key=lambda each: each.records[0].number))
        self._rest(lane)

    def _rest(self, lane: Lane) -> None:
        if lane.rests:
            return
        lane.rests = True

        def go_on() -> None:
            lane.rests = False
            self._pump(lane)

        self.later(self.chance.uniform(40.0, 120.0), lambda: self.refresh(self._names, go_on))

    def _drop_late(self, lane: Lane) -> None:
        late = [batch for batch in lane.waiting if batch.deadline_ms <= self.world.now_ms]
        if late and self.settings.is_idempotent:
            self._begin_anew()
            return
        for batch in late:
            lane.waiting.remove(batch)
            self._forget(batch)

    def _abandon(self, lane: Lane) -> None:
        """Its topic is gone."""
        for batch in (*lane.waiting, *lane.under_way):
            self._forget(batch)
        lane.waiting.clear()
        lane.under_way.clear()

    def _forget(self, batch: OutgoingBatch) -> None:
        if not batch.was_sent:
            for record in batch.records:
                record.fate = Fate.REFUSED

    # An idempotent producer's identity.

    def _begin_anew(self) -> None:
        self._generation += 1
        for lane in self._lanes.values():
            self._abandon(lane)
            lane.next_sequence = 0
        self._producer_id = -1
        self._take_producer_id()

    def _take_producer_id(self) -> None:
        if self._is_beginning:
            return
        self._is_beginning = True

        def heard(answer: InitProducerIdResponse | None) -> None:
            self._is_beginning = False
            if answer is None or answer.error_code:
                self.later(self.chance.uniform(50.0, 200.0), self._take_producer_id)
            else:
                self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        self.ask(self.any_broker(), INIT_PRODUCER_ID, INIT_VERSION, request, heard)
