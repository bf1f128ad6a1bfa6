"""What one broker owns, and what handlers may ask of it.

Partitions that grew during a step are collected in `grown` and settled at its end: watermarks move, waiters are
released, fetch sessions hear of it, and what has to reach the disk is noted for the next flush.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, TypeAlias, TypeVar

from klamm.broker.absent import Absent
from klamm.broker.announcing import announce_all, announce_to_followers, settle_for_followers
from klamm.broker.coordination import Coordination
from klamm.broker.errands import Errands
from klamm.broker.facts import NotClosedCleanly, PartitionFailed
from klamm.broker.housekeeping import FlushWish, Housekeeping
from klamm.broker.image_change import ImageChange
from klamm.broker.keeping import Keeping
from klamm.broker.lane import Lane
from klamm.broker.life import Life
from klamm.broker.partitions import Partitions
from klamm.broker.producer_ids import ProducerIds
from klamm.broker.replication import Replication
from klamm.broker.sessions import Sessions
from klamm.broker.storage import Storage
from klamm.broker.topic_settings import TopicSettings, topic_settings
from klamm.broker.unflushed import Unflushed, is_sound
from klamm.broker.waiting import Waiting
from klamm.config.broker_config import BrokerConfig
from klamm.controller.controller import Controller
from klamm.controller.names import CONSUMER_OFFSETS, INTERNAL
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell
from klamm.ids import BrokerId, Now, Offset
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, DiskFull, File, Files
from klamm.machine import Plan
from klamm.metadata import image as metadata_image
from klamm.metadata.delta import Changes
from klamm.metadata.image import ConfigResource, Endpoint, Image, ResourceType
from klamm.metadata.records import MetadataRecord
from klamm.partition.partition import Partition
from klamm.quorum.raft import Raft
from klamm.slicing import Pace

Response = TypeVar("Response")
CarryingOut: TypeAlias = Generator[None, Now, tuple[Response, Offset | None, KafkaError | None]]
"""A plan of the controller on its way, in slices: its response, where that is true, and what it was refused for."""

SESSION_EVICTION_MS = 120_000.0
MOST_CREATION_ERRORS = 1_000
MOST_CREATED_AT_ONCE = 1_000
"""Of the topics that one request speaks of; who asks again gets the next ones."""


class Broker:
    internal_topics = INTERNAL

    def __init__(
        self, config: BrokerConfig, files: Files, random: Random, tell: Tell, boot_id: str | None = None
    ) -> None:
        self.config = config
        self.life = Life(files, boot_id)
        self.node_id: BrokerId = config.node_id
        self.cluster_id = ""
        self.files = files
        self.image: Image = metadata_image.EMPTY
        self.grown: list[Partition] = []
        self.news_for_followers: dict[Partition, None] = {}
        self.waiting = Waiting()
        self.slices = self.waiting.slices
        """Long work that somebody asked for."""
        self.own_slices = self.waiting.own_slices
        """Long work of this node's own, which does not wait behind what others ask for."""
        self.users = Lane()
        """What users want of the controller is decided in the order it came."""
        self.keeping = Keeping()
        self.storage = Storage(files, tell)
        self.partitions = Partitions(self.node_id, files, self.grown.append, self.life.doubt, tell)
        self.partitions.surroundings.disk_failed = self.storage.note
        self.replication = Replication(self, tell)
        slots = config.integer("max.incremental.fetch.session.cache.slots")
        self.sessions = Sessions(slots, SESSION_EVICTION_MS, random)
        self.producer_ids = ProducerIds()
        self.absent = Absent()
        self.coordination = Coordination(self, random, tell)
        self.fetch_max_bytes = config.integer("fetch.max.bytes")
        self.housekeeping = Housekeeping(self, tell)
        self.epoch: int | None = None
        """What the controller gave to this life of ours."""
        self.is_open = False
        self.controller: Controller | None = None
        """The active controller, if it is this node."""
        self.quorum: Raft
        self.quorum_touched = False
        """Whether a handler had to do with the quorum, which may have something to say now."""
        self.carry_out: Callable[[Plan[MetadataRecord, Any]], Callable[[Now], CarryingOut[Any]]]
        self.errands: Errands
        self.metadata_recovery_point: Callable[[], Offset]
        self.on_configured: Callable[[BrokerConfig], None] = lambda config: None
        """Called when settings may have been altered."""
        self._creation_errors: dict[str, ErrorCode] = {}
        self._tell = tell
        self.flush_wishes: list[FlushWish] = []
        self.unflushed = Unflushed()

    def open(self, now: Now, *, clean: bool) -> None:
        """Open the logs that the image gives us, and lead those we lead."""
        self.is_open = True
        self.follow_config(self.image)
        self.housekeeping.load()
        settings_for, restarted = partial(self.settings_of, self.image), self.life.was_restarted_since_opened
        self.partitions.open_all(self.image, settings_for, now, clean=clean, machine_restarted=restarted)
        self.life.opened()
        # What was recovered counts as ours, so it has to survive the next crash as well.
        self._flush_all()
        self.partitions.lead_all(self.image, now)
        self.replication.begin(now)
        self.coordination.begin(now)

    def _flush_all(self) -> None:
        """Everything in one go, while nobody is served. Who cannot be flushed is offline."""
        ends: list[tuple[Partition, Offset]] = []
        groups: list[list[File]] = []
        for partition in self.partitions:
            if is_sound(partition) and partition.log.recovery_point < partition.log.end_offset:
                try:
                    files, end = self.files_to_flush(partition)
                except DiskFailed as error:
                    self.disk_failed(partition, error)
                    continue
                groups.append(files)
                ends.append((partition, end))
        failures = self.files.flush_groups(groups)
        for number, (partition, end) in enumerate(ends):
            if number in failures:
                self.disk_failed(partition, failures[number])
            else:
                partition.log.flushed(end)

    def files_to_flush(self, partition: Partition) -> tuple[list[File], Offset]:
        """All that has to reach the disk before the partition's records up to this offset count as flushed."""
        files, end = partition.log.files_to_flush()
        return [*files, *self.partitions.directories.unflushed_name(partition)], end

    def close(self) -> bool:
        """Everything on disk, then the checkpoints; whether all went well."""
        self._flush_all()
        clean = True
        for partition in self.partitions:
            try:
                partition.log.close_cleanly()
            except DiskFailed as error:
                self.disk_failed(partition, error)
            if partition.failure is not None:
                self._release_failed(partition, partition.failure)
                clean = False
        try:
            self.housekeeping.checkpoint_now()
        except DiskFailed as error:
            self._tell(NotClosedCleanly(str(error)))
            return False
        return clean

    def note_clean_shutdown(self, epoch: int) -> bool:
        """The marker that says there is nothing to recover, after all else; whether it could be written."""
        try:
            self.files.write_whole(checkpoint.CLEAN_SHUTDOWN, checkpoint.clean_shutdown_text(epoch))
        except DiskFailed as error:
            self._tell(NotClosedCleanly(str(error)))
            return False
        return True

    # What handlers ask.

    def leading(self, topic: str, index: int) -> Partition:
        """The partition, if it is led here."""
        partition = self.partitions.get(topic, index)
        if partition is None:
            known = self.image.partition(topic, index) is not None
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_serving()
        return partition

    def known_brokers(
        self, *, include_fenced: bool = False, also: Collection[BrokerId] = ()
    ) -> Iterator[tuple[metadata_image.Broker, Endpoint]]:
        for broker_id, broker in sorted(self.image.brokers.items()):
            if (include_fenced or not broker.fenced or broker_id in also) and broker.endpoints:
                yield broker, broker.endpoints[0]

    def controller_id(self) -> BrokerId:
        """Any broker will do, since each passes admin requests on: this one is the one that surely answers."""
        return self.node_id

    def create_automatically(self, names: Sequence[str], now: Now) -> dict[str, ErrorCode]:
        """Have topics created that somebody spoke of; the error for those that could not be when it was last tried."""
        if not self.config.boolean("auto.create.topics.enable"):
            return {}
        if CONSUMER_OFFSETS in names:
            # It is not a topic like others.
            self.coordination.offsets_topic.wait_for(now)
        wanted = [name for name in names[:MOST_CREATED_AT_ONCE] if name not in INTERNAL]
        if wanted:
            self.errands.create_topics(wanted, now)
        return {name: self._creation_errors.pop(name) for name in names if name in self._creation_errors}

    def note_creation(self, name: str, error: ErrorCode) -> None:
        """What became of a topic that was to be created automatically; told to whoever asks for it next."""
        if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER):
            self._creation_errors.pop(name, None)
        elif len(self._creation_errors) < MOST_CREATION_ERRORS:
            self._creation_errors[name] = error

    def take_producer_ids(self, now: Now) -> None:
        """Ask the controller for a block of producer ids, unless one is on its way."""
        if not self.producer_ids.is_asked_for:
            self.producer_ids.is_asked_for = True
            self.errands.take_producer_ids(now)

    def settings_of(self, image: Image, topic: str) -> TopicSettings:
        """What holds for a topic in this image."""
        return topic_settings(self.config, image.topic_config(topic))

    # What happens.

    def follow(self, image: Image, changes: Changes, now: Now) -> None:
        """The cluster's metadata moved on: become what it says, and let those who waited for it go on. All at once."""
        work = self.following(image, changes, Pace(), now)
        with suppress(StopIteration):
            next(work)
            while True:
                work.send(now)

    def following(self, image: Image, changes: Changes, pace: Pace, now: Now) -> Generator[None, Now, Now]:
        """The same in slices; the time when it is done."""
        return ImageChange(self, image, changes, pace).work(now)

    def settle_grown(self, now: Now) -> None:
        grown = self.grown[:]
        self.grown.clear()
        moved: list[Partition] = []
        for partition in grown:
            if partition.failure is not None:
                self._release_failed(partition, partition.failure)
                continue
            if partition.maybe_advance():
                self.waiting.watermark_moved(partition)
                moved.append(partition)
            if partition.followers_hear:
                self.news_for_followers[partition] = None
            if not partition.can_commit:
                self.waiting.cannot_commit(partition)
            self.waiting.became_durable(partition)
            if partition.is_flushed or partition.log.has_unflushed_segments:
                self.unflushed.note(partition, now)
        if moved:
            announce_all(moved, self.waiting)

    def tell_followers(self) -> None:
        """What was written since they were told last."""
        news = list(self.news_for_followers)
        self.news_for_followers.clear()
        settle_for_followers(news, self.waiting)

    def announce(self, partition: Partition) -> None:
        """Something about this partition is different: tell fetches and fetch sessions that look at it."""
        announce_all((partition,), self.waiting)

    def disk_failed(self, partition: Partition, error: DiskFailed) -> None:
        self.storage.note(error)
        self.fail(partition, str(error), full=isinstance(error, DiskFull))

    def fail(self, partition: Partition, reason: str, *, full: bool = False) -> None:
        """This partition's disk broke its promise. When the step settles, everybody who waits for it hears so."""
        partition.fail(reason, full=full)

    def _release_failed(self, partition: Partition, reason: str) -> None:
        if not partition.failed_full:
            self.life.distrust()
        partition.maybe_advance()
        if not partition.failure_told:
            partition.failure_told = True
            self._tell(PartitionFailed(str(partition.topic_partition), reason))
        self.waiting.failed(partition)
        self.coordination.failed(partition)
        self.announce(partition)
        announce_to_followers((partition,), self.waiting)

    def follow_config(self, image: Image) -> None:
        own = image.config_of(ConfigResource(ResourceType.BROKER, str(self.node_id)))
        default = image.config_of(ConfigResource(ResourceType.BROKER, ""))
        self.config = self.config.with_dynamic(own, default)
        self.fetch_max_bytes = self.config.integer("fetch.max.bytes")
        self.coordination.configure(self.config)
        self.on_configured(self.config)
