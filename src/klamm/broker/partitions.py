"""The partitions this broker holds: opened from disk, created, led, followed and deleted as the image says.

The metadata log is the truth. A partition whose log cannot be opened is there all the same, offline, and says why to
everybody who asks; the others go on. One that was reassigned to others is given up, as if its topic were deleted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from klamm.broker.directories import Directories, LastLife
from klamm.broker.facts import DamagedCheckpoint, LogsOpened, RecordsMissing
from klamm.broker.topic_settings import TopicSettings
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell
from klamm.ids import NO_BROKER, BrokerId, Now, Offset, TopicPartition, Uuid
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, DiskFull, Files
from klamm.log.log import Log
from klamm.log.salvage import Care, LogDamaged
from klamm.metadata.image import ConfigResource, Image, PartitionState, ResourceType, Topic
from klamm.partition.partition import Partition
from klamm.partition.surroundings import Surroundings
from klamm.partition.traffic import Traffic

SettingsFor: TypeAlias = Callable[[str], TopicSettings]


class _Opening(NamedTuple):
    """What is known of the logs when a broker opens its disk."""

    clean: bool
    keeps_writes: bool
    """Whether the machine has been up since the last life: all that was written is there."""
    recovery_points: Mapping[TopicPartition, Offset]
    start_offsets: Mapping[TopicPartition, Offset]
    watermarks: Mapping[TopicPartition, Offset]
    on_disk: Mapping[str, DiskFailed | LogDamaged | None]
    """The directories; beside each, why nobody knows whose records are in it."""


class Partitions:
    def __init__(
        self,
        me: BrokerId,
        files: Files,
        grown: Callable[[Partition], None],
        doubt: Callable[[], None],
        tell: Tell,
    ) -> None:
        """`doubt` is called when something that was written turns out to be missing, before that is mended."""
        self._doubt = doubt
        self._me = me
        self._files = files
        self._grown = grown
        self._tell = tell
        self._by_name: dict[str, list[Partition | None]] = {}
        self._by_id: dict[Uuid, list[Partition | None]] = {}
        self.traffic: dict[str, Traffic] = {}
        """By topic, of those that are or were held here and are not deleted."""
        self.traffic_before = Traffic()
        """Of topics that are deleted."""
        self.missing_records = 0
        """That this broker had, by its checkpoints, and did not find when it opened its logs."""
        self.directories = Directories(files, doubt, tell)
        self.wishing: dict[Partition, None] = {}
        """Those whose in-sync replicas may have to change."""
        self.surroundings = Surroundings(self._wants_isr_look)

    def _wants_isr_look(self, partition: Partition) -> None:
        self.wishing[partition] = None

    # Finding.

    def by_name(self, topic: str) -> Sequence[Partition | None] | None:
        return self._by_name.get(topic)

    def by_id(self, topic_id: Uuid) -> Sequence[Partition | None] | None:
        return self._by_id.get(topic_id)

    def get(self, topic: str, index: int) -> Partition | None:
        found = self._by_name.get(topic)
        return found[index] if found is not None and 0 <= index < len(found) else None

    def __iter__(self) -> Iterator[Partition]:
        for name in sorted(self._by_name):
            yield from (partition for partition in self._by_name[name] if partition is not None)

    def in_any_order(self) -> list[Partition]:
        """All of them, quickly, for whoever wants to go on with them later."""
        return [partition for found in self._by_name.values() for partition in found if partition is not None]

    def __len__(self) -> int:
        return sum(partition is not None for found in self._by_name.values() for partition in found)

    # Opening.

    def open_all(
        self,
        image: Image,
        settings_for: SettingsFor,
        now: Now,
        *,
        clean: bool,
        machine_restarted: bool | None = None,
    ) -> None:
        """Open every log of the image that is ours, and set aside the directories that are nobody's. So the image must
        not be older than what was on this disk."""
        recovery_points = self.checkpointed(checkpoint.RECOVERY_POINTS)
        keeps_writes = machine_restarted is False
        last = LastLife(lambda name: clean or recovery_points.get(name, 0) > 0, keeps_writes)
        opening = _Opening(
            clean,
            keeps_writes,
            recovery_points,
            self.checkpointed(checkpoint.LOG_START_OFFSETS),
            self.checkpointed(checkpoint.HIGH_WATERMARKS),
            self.directories.belonging_to(image, self._me, last),
        )
        opened = 0
        for topic in image.topics.values():
            settings = settings_for(topic.name)
            for index, state in enumerate(topic.partitions):
                if self._me in state.replicas:
                    partition = self._opened(topic, index, settings, now, opening)
                    self._place(topic, index, partition)
                    self._tell_what_is_missing(partition, state, opening)
                    opened += 1
        if opened:
            self._tell(LogsOpened(opened, clean))

    def _opened(
        self, topic: Topic, index: int, settings: TopicSettings, now: Now, opening: "_Opening | None" = None
    ) -> Partition:
        """With the log the disk holds, if we are opening what it holds, or else a new one."""
        name = TopicPartition(topic.name, index)
        directory = str(name)
        start_offset = high_watermark = 0
        failure: DiskFailed | KafkaError | None = None
        try:
            if opening is None or directory not in opening.on_disk:
                self.directories.make_way(directory)
                create = partial(self.directories.create, directory, topic.topic_id)
                log = Log.new(directory, self._files, settings.log, create)
            else:
                start_offset = opening.start_offsets.get(name, 0)
                high_watermark = opening.watermarks.get(name, 0)
                if (unknown := opening.on_disk[directory]) is not None:
                    raise unknown
                log = Log.open(
                    directory,
                    self._files,
                    settings.log,
                    now,
                    clean=opening.clean,
                    recovery_point=opening.recovery_points.get(name, 0),
                    start_offset=start_offset,
                    tell=self._tell,
                    on_damage=self._doubt,
                    care=Care(opening.keeps_writes, is_only_copy=self._is_only_copy(topic.partitions[index])),
                )
        except (DiskFailed, KafkaError) as error:
            failure = error
            if not isinstance(error, DiskFull):
                self._doubt()
            log = Log.unopened(directory, self._files, settings.log, start_offset)
        partition = Partition(
            name,
            topic.topic_id,
            log,
            self._me,
            settings.min_in_sync_replicas,
            self._grown,
            self.surroundings,
            high_watermark,
            self.traffic.setdefault(topic.name, Traffic()),
        )
        if failure is not None:
            advice = "; `klamm storage repair` mends it when this broker is stopped"
            reason = f"{failure}{advice if isinstance(failure, LogDamaged) else ''}"
            partition.fail(reason, full=isinstance(failure, DiskFull))
        return partition

    def _is_only_copy(self, state: PartitionState) -> bool:
        """Nobody else is known to have all of its records."""
        return not {*state.isr, *state.elr} - {self._me}

    def _tell_what_is_missing(self, partition: Partition, state: PartitionState, opening: _Opening) -> None:
        """What the last life of this broker had, by its checkpoints. One that cannot be opened says so itself."""
        name, end_offset = partition.topic_partition, partition.log.end_offset
        known_end = max(opening.recovery_points.get(name, 0), opening.watermarks.get(name, 0))
        if partition.failure is not None or known_end <= end_offset or str(name) in self.directories.taken_away:
            return
        others = sorted({*state.isr, *state.elr} - {self._me})
        if state.leader not in (NO_BROKER, self._me):
            whence = f"they are fetched again from broker {state.leader}, which leads it"
        elif others:
            whence = f"they are fetched again when one of {', '.join(map(str, others))} leads it"
        else:
            whence = "no other broker is known to have them"
        if self._me in {*state.isr, *state.elr}:
            # It would lead as one that has everything, and the others would cut theirs. (Of a topic that was created
            # under this name while this broker was away, it is neither.)
            self._doubt()
        self.missing_records += known_end - end_offset
        self._tell(RecordsMissing(str(name), end_offset, known_end, whence))

    def checkpointed(self, name: str) -> dict[TopicPartition, Offset]:
        """A checkpoint, or nothing where it is missing or damaged: then more is recovered than had to be."""
        if not self._files.exists(name):
            return {}
        try:
            offsets = checkpoint.read_offsets(checkpoint.read_small(self._files, name, checkpoint.LARGEST_BYTES))
        except DiskFailed:
            offsets = None
        if offsets is None:
            self._tell(DamagedCheckpoint(name))
            return {}
        return offsets

    # Following the image.

    def lead_all(self, image: Image, now: Now) -> None:
        """After the start: take up the roles the image gives us."""
        self.follow_brokers(image)
        for topic in image.topics.values():
            for partition, state in zip(self._by_name.get(topic.name, ()), topic.partitions, strict=False):
                if partition is not None:
                    partition.take_role(state, now)

    def follow_state(
        self, topic: Topic, index: int, state: PartitionState, settings_for: SettingsFor, now: Now
    ) -> Partition | None:
        """Become what the image says of one partition; the partition, if it is, or was, ours."""
        partition = self.get(topic.name, index)
        if self._me not in state.replicas:
            return None if partition is None else self._give_up(topic, partition)
        if partition is None:
            partition = self._opened(topic, index, settings_for(topic.name), now)
            self._place(topic, index, partition)
        partition.take_role(state, now)
        return partition

    def follow_brokers(self, image: Image) -> None:
        self.surroundings.active.clear()
        for broker_id, broker in image.brokers.items():
            if broker.is_active:
                self.surroundings.active[broker_id] = broker.epoch

    def follow_config(self, resource: ConfigResource, settings_for: SettingsFor) -> Iterator[Partition]:
        """Give the partitions their settings anew, one after the other."""
        if resource.type == ResourceType.TOPIC:
            names = [resource.name] if resource.name in self._by_name else []
        else:
            names = sorted(self._by_name)
        for name in names:
            settings = settings_for(name)
            for partition in self._by_name[name]:
                if partition is not None:
                    partition.configure(settings.log, settings.min_in_sync_replicas)
                    yield partition

    # Placing and deleting.

    def _place(self, topic: Topic, index: int, partition: Partition) -> None:
        found = self._by_name.setdefault(topic.name, [])
        self._by_id[topic.topic_id] = found
        found.extend([None] * (index + 1 - len(found)))
        found[index] = partition

    def delete(self, topic: Topic) -> Iterator[Partition]:
        """One partition after the other."""
        found = self._by_name.get(topic.name, [])
        for index, partition in enumerate(found):
            if partition is not None:
                found[index] = None
                self._remove(partition)
                yield partition
        self._by_name.pop(topic.name, None)
        self._by_id.pop(topic.topic_id, None)
        self.traffic_before.add(self.traffic.pop(topic.name, Traffic()))

    def _give_up(self, topic: Topic, partition: Partition) -> Partition:
        """Others hold it now."""
        found = self._by_name[topic.name]
        found[partition.topic_partition.partition] = None
        if not any(found):
            del self._by_name[topic.name], self._by_id[topic.topic_id]
        partition.why_gone = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._remove(partition)
        return partition

    def _remove(self, partition: Partition) -> None:
        partition.deleted = True
        partition.leader = NO_BROKER
        self.wishing.pop(partition, None)
        partition.log.close()
        if partition.log.has_directory:
            self.directories.set_aside(str(partition.topic_partition), partition.topic_id)
