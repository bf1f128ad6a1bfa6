"""The directories of partitions: made for a topic, set aside when it goes, removed for good in slices.

The metadata log says which partitions there are; a directory is only where one lives. It names its topic's id in
`partition.metadata`, as in Kafka, so a directory of a topic that was deleted while we were away, or whose name was
given to another topic since, is not taken for what it is not.

Removed is only what is known to have been deleted: its `partition.metadata` is intact and names a topic that the
metadata does not know any more, or whose partition others hold now. Everything else that is not ours, or may not be, is
kept under another name (`-stray`, as in Kafka) and told as an error; nothing removes it but a person. So is one that is
in the way of a partition. Where nobody else has the records, a directory that cannot say whose it is stays where it is,
and its partition is offline until somebody has said so (`klamm storage repair`).

Of what somebody else put here nothing is removed. What is only called like a partition, `backup-2024` with a thesis in
it, is left alone; where one of ours has to be, it is kept under another name.

A partition has a directory from its first record on. Ten thousand new ones are ten thousand objects and no system call.
"""

import re
from collections.abc import Callable, Iterator
from errno import ENOENT, ENOTDIR
from itertools import count
from typing import NamedTuple

from klamm.broker.facts import (
    DirectoriesKept,
    DirectoryKept,
    DirectoryStays,
    NameMended,
    StrangeDirectory,
    StrangeFiles,
    StrayDirectory,
)
from klamm.controller.names import CLUSTER_METADATA
from klamm.facts import Tell
from klamm.ids import ZERO_UUID, BrokerId, Now, TopicPartition, Uuid, uuid_text
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, File, Files
from klamm.log.names import CUT, LOG, PARTITION_METADATA, is_of_a_log
from klamm.log.salvage import LogDamaged
from klamm.metadata.image import Image, PartitionState
from klamm.partition.partition import Partition

DELETED = "-delete"
STRAY = "-stray"
SET_ASIDE = re.compile(rf".+\.[0-9a-f]{{32}}({DELETED}|{STRAY})")
LONGEST_NAME = 200
"""A name has to hold a topic's id and a suffix besides, and file systems allow 255 bytes."""
ENOUGH_BYTES = 8
"""Two topic ids, which are drawn, never have so many of their bytes in common: one is the other, damaged."""


class LastLife(NamedTuple):
    """What is known of the disk as the last life left it."""

    is_flushed: Callable[[TopicPartition], bool]
    """Whether something of this partition surely reached the disk, and the name of its directory with it."""
    keeps_writes: bool
    """Whether the machine has been up since: all that was written is there."""


def is_of_a_partition(name: str) -> bool:
    """By its name: a directory that is a partition's, or one's that was set aside."""
    topic_name, dash, number = name.rpartition("-")
    is_one = bool(dash) and number.isdecimal() and number.isascii() and topic_name != CLUSTER_METADATA
    return is_one or is_set_aside(name)


def is_set_aside(name: str) -> bool:
    return SET_ASIDE.fullmatch(name) is not None


class Directories:
    def __init__(self, files: Files, doubt: Callable[[], None], tell: Tell) -> None:
        self._files = files
        self._doubt = doubt
        self._tell = tell
        self._doomed: list[str] = []
        self._is_image_doubted = False
        self._deleted: set[Uuid] | None = set()
        """Topics of which a record says so, as long as the logs have not been opened."""
        self.taken_away: set[str] = set()
        """Where directories of other topics were, when the logs were opened."""

    def doubt_image(self) -> None:
        """The end of the metadata log was cut, or may be missing: that it does not know a topic says nothing. Only what
        a record deletes is known to have been deleted."""
        self._is_image_doubted = True

    def note_deleted(self, topic_id: Uuid) -> None:
        """A record of the metadata says so."""
        if self._deleted is not None:
            self._deleted.add(topic_id)

    def belonging_to(self, image: Image, me: BrokerId, last: LastLife) -> dict[str, DiskFailed | LogDamaged | None]:
        """Those on disk that belong to our replicas of the image, or may: beside these, what kept us from finding out.
        The others are set aside."""
        found: dict[str, DiskFailed | LogDamaged | None] = {}
        kept: list[str] = []
        for entry in self._files.listing(""):
            if is_set_aside(entry):
                (kept if entry.endswith(STRAY) else self._doomed).append(entry)
            elif is_of_a_partition(entry):
                topic_name, _, number = entry.rpartition("-")
                place = TopicPartition(topic_name, int(number))
                state = image.partition(*place)
                held = state if state is not None and me in state.replicas else None
                try:
                    if self._is_ours(entry, place, held, image, me, last):
                        found[entry] = None
                except (DiskFailed, LogDamaged) as error:
                    # Whatever it is, the others serve.
                    if held is not None:
                        found[entry] = error
                    else:
                        self._tell(DirectoryStays(entry, str(error)))
        self._deleted = None
        if kept:
            self._tell(DirectoriesKept(tuple(kept)))
        return found

    def _is_ours(
        self,
        entry: str,
        place: TopicPartition,
        held: PartitionState | None,
        image: Image,
        me: BrokerId,
        last: LastLife,
    ) -> bool:
        """Whether it is the partition's that we should have; else it is set aside, or not ours. `LogDamaged`: nobody
        can tell, and nobody else has the records."""
        if not self._is_by_content(entry):
            self._tell(StrangeDirectory(entry))
            return False
        found = self._topic_id_of(entry)
        topic = image.topics.get(place.topic)
        is_damaged = found is None or (topic is not None and found != topic.topic_id and alike(found, topic.topic_id))
        if held is not None and topic is not None:
            if found == topic.topic_id:
                return True
            is_only_copy = not {*held.isr, *held.elr} - {me}
            if is_damaged and (last.is_flushed(place) if found is None else is_only_copy):
                self._mend_name(entry, topic.topic_id)
                return True
            if is_damaged and self._has_records(entry):
                if is_only_copy and last.keeps_writes:
                    raise LogDamaged(
                        f"{entry}/{PARTITION_METADATA} is damaged and does not say which topic the records belong to"
                    )
                self._doubt()
        if not is_damaged:
            self.taken_away.add(entry)
        self._set_stray_aside(entry, place, found, image, is_damaged=is_damaged)
        return False

    def _set_stray_aside(
        self, entry: str, place: TopicPartition, found: Uuid | None, image: Image, *, is_damaged: bool
    ) -> None:
        topic_id = uuid_text(found) if found else "unknown"
        known_as = image.topic_names.get(found) if found else None
        if not self._has_records(entry):
            self._tell(StrayDirectory(entry, topic_id))
            self.set_aside(entry, found or ZERO_UUID)
        elif is_damaged:
            self._keep(entry, found, f"its {PARTITION_METADATA} is damaged")
        elif self._is_image_doubted and found not in (self._deleted or ()):
            reason = f"topic {topic_id} is not in the metadata, and nothing there says that it was deleted"
            self._keep(entry, found, reason)
        elif known_as is not None and (known_as != place.topic or image.partition(*place) is None):
            self._keep(entry, found, f"topic {topic_id} is called {known_as} and has no such partition")
        else:
            # Deleted, or given to others, while this broker was away.
            self._tell(StrayDirectory(entry, topic_id))
            self.set_aside(entry, found or ZERO_UUID)

    def _keep(self, entry: str, found: Uuid | None, reason: str) -> None:
        try:
            self._tell(DirectoryKept(entry, self._rename(entry, found or ZERO_UUID, STRAY), reason))
        except DiskFailed as error:
            self._tell(DirectoryStays(entry, str(error)))

    def _mend_name(self, entry: str, topic_id: Uuid) -> None:
        self._tell(NameMended(entry, uuid_text(topic_id)))
        self.write_name(entry, topic_id)

    def _has_records(self, directory: str) -> bool:
        """(One without was being made when the process was killed.)"""
        names = self._files.listing(directory)
        return any(name.endswith((LOG, CUT)) and self._files.file(f"{directory}/{name}").size for name in names)

    def _is_by_content(self, directory: str) -> bool:
        """Whether it holds files of a log, or nothing: it was being made. Anything else is somebody's."""
        names = self._names_in(directory)
        return names is not None and (not names or any(map(is_of_a_log, names)))

    def make_way(self, directory: str) -> None:
        """One of an earlier topic may stand where a new one is going to be, or something that is not ours."""
        if self._files.exists(directory):
            found = self._topic_id_of(directory)
            kept_as = self._rename(directory, found or ZERO_UUID, STRAY)
            self._tell(DirectoryKept(directory, kept_as, "it is where a partition has to be, and not that partition's"))

    def create(self, directory: str, topic_id: Uuid) -> None:
        self._files.make_directory(directory)
        self.write_name(directory, topic_id)

    def write_name(self, directory: str, topic_id: Uuid) -> None:
        path = f"{directory}/{PARTITION_METADATA}"
        self._files.write_whole(path, checkpoint.partition_metadata_text(topic_id), durable=False)

    def unflushed_name(self, partition: Partition) -> list[File]:
        """The file that says whose directory it is, if it is not on disk for sure. Without it, records that are would
        belong to nobody after a power loss. A partition without records has neither."""
        if partition.is_name_flushed or not partition.log.has_directory:
            return []
        partition.is_name_flushed = True
        return [self._files.file(f"{partition.topic_partition}/{PARTITION_METADATA}")]

    def set_aside(self, directory: str, topic_id: Uuid) -> None:
        """Away with it at once, if only by name: a topic of the same name can be created. The content goes later."""
        try:
            self._doomed.append(self._rename(directory, topic_id, DELETED))
        except DiskFailed as error:
            self._tell(DirectoryStays(directory, str(error)))

    def remove_doomed(self, now: Now) -> Iterator[float]:
        """A chore: discard what was set aside, one directory a slice. What cannot be is tried again at the next."""
        stay = []
        while self._doomed:
            directory = self._doomed.pop()
            try:
                self._discard(directory)
            except DiskFailed as error:
                # One that is not there any more was removed by somebody else.
                if error.errno != ENOENT:
                    stay.append(directory)
                    self._tell(DirectoryStays(directory, str(error)))
            yield 0.0
        self._doomed = stay

    def _discard(self, directory: str) -> None:
        names = self._names_in(directory)
        if names is None:
            self._tell(StrangeDirectory(directory))
            return
        self._files.discard_directory(directory, list(filter(is_of_a_log, names)))
        if others := [name for name in names if not is_of_a_log(name)]:
            self._tell(StrangeFiles(directory, tuple(others)))

    def _rename(self, directory: str, topic_id: Uuid, suffix: str) -> str:
        # The id tells people whose it was. Another one tells it apart from what stayed of an earlier one.
        for number in count(int.from_bytes(topic_id, "big")):
            renamed = f"{directory[:LONGEST_NAME]}.{number:032x}{suffix}"
            if not self._files.exists(renamed):
                break
        self._files.rename(directory, renamed)
        return renamed

    def _names_in(self, directory: str) -> list[str] | None:
        """None of a file."""
        try:
            return self._files.listing(directory)
        except DiskFailed as error:
            if error.errno == ENOTDIR:
                return None
            raise

    def _topic_id_of(self, directory: str) -> Uuid | None:
        path = f"{directory}/{PARTITION_METADATA}"
        if not self._files.exists(path):
            return None
        return checkpoint.read_partition_metadata(checkpoint.read_small(self._files, path))


def alike(one: Uuid, other: Uuid) -> bool:
    return sum(each == its for each, its in zip(one, other, strict=True)) >= ENOUGH_BYTES
