"""A consumer of whole topics: it reads every partition from its beginning, over and over if it is told to.

It fetches with or without sessions, by name or by topic id, from the leader or from whom the leader names, and shows
every record to the history. A gap between two records it was given, or one that does not belong there, is found there.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId, Epoch, Offset, Uuid
from klamm.records.batch import batches
from klamm.records.record import records_of
from klamm.sim.clients.client import Client, Desk
from klamm.sim.clients.history import History
from klamm.wire.apis import FETCH, LIST_OFFSETS
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

FIRST_VERSION_BY_ID = 13
LIST_VERSION = 6
EARLIEST = -2
WAIT_MS = 300
MOST_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    topics: tuple[str, ...]
    version: int
    has_session: bool
    rack: str = ""


class Place:
    """Where the reader stands in one partition."""

    __slots__ = ("epoch", "high_watermark", "index", "is_lost", "offset", "replica", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: Uuid, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.offset: Offset = 0
        self.epoch: Epoch = -1
        self.high_watermark: Offset = -1
        self.is_lost = False
        """Whether it has to ask where the partition begins."""
        self.replica: BrokerId = NO_BROKER
        """Whom it was sent to instead of the leader."""

    @property
    def key(self) -> tuple[Uuid, int]:
        return self.topic_id, self.index


class Talk:
    """One broker's fetch session, and whether a fetch is under way."""

    def __init__(self) -> None:
        self.session_id = 0
        self.session_epoch = 0
        self.named: dict[tuple[Uuid, int], tuple[Offset, Epoch]] = {}
        self.is_busy = False
        self.sent_on: set[tuple[Uuid, int]] = set()
        """What was asked here because the leader said so."""

    def forget(self) -> None:
        self.session_id = self.session_epoch = 0
        self.named = {}


class Consumer(Client):
    def __init__(self, desk: Desk, settings: ConsumerSettings, history: History) -> None:
        super().__init__(desk)
        self.settings = settings
        self.records = 0
        self.sent_on = 0
        """How often a leader named a follower to read from."""
        self.read_from_followers = 0
        self.places: dict[tuple[Uuid, int], Place] = {}
        self._history = history
        self._talks: dict[BrokerId, Talk] = {}
        self._refreshing = False

    def begin(self) -> None:
        self._refresh()
        self._keep_fresh()

    def start_over(self) -> None:
        """Read everything again."""
        for place in self.places.values():
            place.offset, place.epoch, place.is_lost = 0, -1, False

    def _keep_fresh(self) -> None:
        self.later(self.chance.uniform(1_000.0, 3_000.0), self._keep_fresh)
        for place in self.places.values():
            # Now and then the leader is asked again who is near.
            place.replica = NO_BROKER
        self._refresh()

    def _refresh(self) -> None:
        if not self._refreshing:
            self._refreshing = True
            self.refresh(list(self.settings.topics), self._refreshed)

    def _refreshed(self) -> None:
        self._refreshing = False
        self.places = self._wanted_places()
        for broker in self.brokers:
            self._fetch(broker)
        if any(map(self._is_outdated, self.places.values())):
            self.later(self.chance.uniform(50.0, 150.0), self._refresh)

    def _wanted_places(self) -> dict[tuple[Uuid, int], Place]:
        """Where it reads from now on: every partition that is known."""
        current = {}
        for topic in self.settings.topics:
            known = self.topics.get(topic)
            for index in known.partitions if known is not None else ():
                assert known is not None
                key = (known.topic_id, index)
                current[key] = self.places.get(key) or Place(topic, known.topic_id, index)
        return current

    # Fetching.

    def _whom(self, place: Place) -> BrokerId:
        if place.replica in self.brokers:
            return place.replica
        return NO_BROKER if self._is_outdated(place) else self.leader_of(place.topic, place.index)

    def _is_outdated(self, place: Place) -> bool:
        """What it has read tells of a later leader than anybody did: who led before may be far behind by now."""
        known = self.topics[place.topic].partitions.get(place.index) if place.topic in self.topics else None
        return known is not None and known.epoch < place.epoch

    def _fetch(self, broker: BrokerId) -> None:
        talk = self._talks.setdefault(broker, Talk())
        mine = [place for place in self.places.values() if self._whom(place) == broker]
        if talk.is_busy or not mine:
            return
        for place in mine:
            if place.is_lost:
                talk.is_busy = True
                self._find_beginning(place, broker, talk)
                return
        if talk.session_id and any(place.key not in talk.named for place in mine):
            # (A session could grow; one that is closed and begun anew is the harder case for a broker.)
            talk.forget()
        held = {place.key: (place.offset, place.epoch) for place in mine}
        if talk.session_id and talk.named.keys() - held.keys():
            talk.forget()
        wanted = [place for place in mine if talk.named.get(place.key) != (place.offset, place.epoch)]
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=MOST_BYTES,
            session_id=talk.session_id,
            session_epoch=talk.session_epoch if self.settings.has_session else -1,
            topics=self._topics(wanted if self.settings.has_session else mine),
            rack_id=self.settings.rack,
        )
        talk.named = held
        talk.sent_on = {place.key for place in mine if place.replica == broker}
        talk.is_busy = True
        self.ask(broker, FETCH, self.settings.version, request, partial(self._fetched, broker, talk, held))

    def _topics(self, places: list[Place]) -> list[FetchTopic]:
        by_topic: dict[Uuid, FetchTopic] = {}
        for place in places:
            topic = by_topic.get(place.topic_id)
            if topic is None:
                topic = by_topic[place.topic_id] = FetchTopic(partitions=[])
                if self.settings.version >= FIRST_VERSION_BY_ID:
                    topic.topic_id = place.topic_id
                else:
                    topic.topic = place.topic
            known = self.topics[place.topic].partitions.get(place.index) if place.topic in self.topics else None
            topic.partitions.append(
                FetchPartition(
                    partition=place.index,
                    current_leader_epoch=-1 if known is None or place.replica != NO_BROKER else known.epoch,
                    fetch_offset=place.offset,
                    last_fetched_epoch=place.epoch,
                    partition_max_bytes=MOST_BYTES,
                )
            )
        return list(by_topic.values())

    def _fetched(
        self,
        broker: BrokerId,
        talk: Talk,
        asked: dict[tuple[Uuid, int], tuple[Offset, Epoch]],
        answer: FetchResponse | None,
    ) -> None:
        talk.is_busy = False
        if answer is None or answer.error_code:
            talk.forget()
            self.later(self.chance.uniform(50.0, 150.0), self._refresh)
            return
        talk.session_id = answer.session_id if self.settings.has_session else 0
        talk.session_epoch = talk.session_epoch + 1 if talk.session_id else 0
        if not talk.session_id:
            # Without a session everything is named every time.
            talk.named = {}
        is_stale = False
        for topic in answer.responses:
            for part in topic.partitions:
                place = self._place(topic, part.partition_index)
                if place is None or asked.get(place.key) != (place.offset, place.epoch):
                    continue
                if place.key in talk.sent_on and place.replica != broker:
                    # It has gone back to the leader meanwhile: what a follower does not know counts for nothing.
                    continue
                is_stale |= not self._take(place, part)
        if is_stale:
            self.later(self.chance.uniform(20.0, 80.0), self._refresh)
        else:
            # Real ones take their time too; without it an empty answer could follow another in no time at all.
            self.later(self.chance.uniform(1.0, 5.0), partial(self._fetch, broker))

    def _place(self, topic: Any, index: int) -> Place | None:
        if self.settings.version >= FIRST_VERSION_BY_ID:
            return self.places.get((topic.topic_id, index))
        known = self.topics.get(topic.topic)
        return self.places.get((known.topic_id, index)) if known is not None else None

    def _take(self, place: Place, part: Any) -> bool:
        """Whether the reader goes on from here; else it has to look for its leader."""
        code = ErrorCode(part.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if place.replica != NO_BROKER:
                # A follower may be behind its leader, who knows better.
                place.replica = NO_BROKER
                return False
            place.is_lost = True
            return True
        if code is not ErrorCode.NONE:
            place.replica = NO_BROKER
            return False
        if part.preferred_read_replica != NO_BROKER:
            place.replica = part.preferred_read_replica
            self.sent_on += 1
            # Nobody else would ask there: it may be one with whom there is no talk yet.
            self.later(self.chance.uniform(1.0, 5.0), partial(self._fetch, place.replica))
            return True
        if part.diverging_epoch.epoch >= 0:
            self._history.on_cut(self.name, place.key, place.offset, part.diverging_epoch.end_offset)
            place.offset = min(place.offset, part.diverging_epoch.end_offset)
            place.epoch = part.diverging_epoch.epoch
            return True
        place.high_watermark = part.high_watermark
        self._read(place, bytes(part.records or b""))
        return True

    def _read(self, place: Place, data: bytes) -> None:
        key = place.key
        view = memoryview(data)
        for position, batch in batches(view):
            end = position + batch.length + 12
            for record in records_of(view[position:end]):
                if record.offset < place.offset:
                    continue
                if record.offset != place.offset:
                    self._history.on_gap(self.name, key, place.offset, record.offset)
                self.records += 1
                self.read_from_followers += place.replica != NO_BROKER
                name = record.headers[0][1] if record.value is None and record.headers else record.value
                self._saw(place, record.offset, bytes(name or b""))
                place.offset = record.offset + 1
            next_offset = batch.base_offset + batch.last_offset_delta + 1
            if place.offset < next_offset:
                self._history.on_gap(self.name, key, place.offset, next_offset)
                place.offset = next_offset
            place.epoch = batch.leader_epoch

    def _saw(self, place: Place, offset: Offset, value: bytes) -> None:
        self._history.was_seen(self.name, place.key, offset, value)

    # Where a partition begins.

    def _find_beginning(self, place: Place, broker: BrokerId, talk: Talk) -> None:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=place.topic, partitions=[ListOffsetsPartition(partition_index=place.index, timestamp=EARLIEST)]
                )
            ],
        )

        def heard(answer: ListOffsetsResponse | None) -> None:
            talk.is_busy = False
            part = answer.topics[0].partitions[0] if answer is not None else None
            if part is None or part.error_code:
                self.later(self.chance.uniform(20.0, 80.0), self._refresh)
                return
            place.is_lost = False
            if part.offset > place.offset:
                self._history.on_moved(self.name, place.key, part.offset)
                place.offset, place.epoch = part.offset, -1
            else:
                # It is beyond the end: what it has read is not there.
                self._history.on_beyond(self.name, place.key, place.offset)
                place.offset, place.epoch = part.offset, -1
            self._fetch(broker)

        self.ask(broker, LIST_OFFSETS, LIST_VERSION, request, heard)
