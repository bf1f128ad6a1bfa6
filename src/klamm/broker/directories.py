"""The directories of partitions: made for a topic, set aside when it goes, removed for good in slices.

The metadata log says which partitions there are; a directory is only where one lives. It names its topic's id in
`partition.metadata`, as in Kafka, so a directory of a topic that was deleted while we were away, or whose name was
given to another topic since, is not taken for what it is not. Such a one is set aside under a name of its own and
removed. So is one that names no topic, unless something in it was surely flushed: the name reaches the disk with the
first records that do, so after a power loss there is nothing to be kept in it, and it may be an earlier topic's.

Of what somebody else put here nothing is removed. What is only called like a partition, `backup-2024` with a thesis in
it, is left alone; where one of ours has to be, or was, it is set aside, but of its files only those of a log go.

A partition has a directory from its first record on. Ten thousand new ones are ten thousand objects and no system call.
"""

import re
from collections.abc import Callable, Iterator
from errno import ENOENT, ENOTDIR
from itertools import count

from klamm.broker.facts import DirectoryStays, StrangeDirectory, StrangeFiles, StrayDirectory
from klamm.controller.names import CLUSTER_METADATA
from klamm.facts import Tell
from klamm.ids import ZERO_UUID, BrokerId, Now, TopicPartition, Uuid, uuid_text
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, File, Files
from klamm.log.names import LOG, PARTITION_METADATA, is_of_a_log
from klamm.metadata.image import Image
from klamm.partition.partition import Partition

DELETED = "-delete"
STRAY = "-stray"
SET_ASIDE = re.compile(rf".+\.[0-9a-f]{{32}}({DELETED}|{STRAY})")
LONGEST_NAME = 200
"""A name has to hold a topic's id and a suffix besides, and file systems allow 255 bytes."""


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

    def belonging_to(
        self, image: Image, me: BrokerId, is_flushed: Callable[[TopicPartition], bool]
    ) -> dict[str, DiskFailed | None]:
        """Those on disk that belong to our replicas of the image, or may: beside these, what kept us from finding out.
        The others are set aside."""
        found: dict[str, DiskFailed | None] = {}
        for entry in self._files.listing(""):
            if is_set_aside(entry):
                self._doomed.append(entry)
            elif is_of_a_partition(entry):
                topic_name, _, number = entry.rpartition("-")
                place = TopicPartition(topic_name, int(number))
                state = image.partition(*place)
                held = image.topics[topic_name].topic_id if state is not None and me in state.replicas else None
                try:
                    if self._judged(entry, held, place, is_flushed):
                        found[entry] = None
                except DiskFailed as error:
                    # Whatever it is, the others serve.
                    if held is not None:
                        found[entry] = error
                    else:
                        self._tell(DirectoryStays(entry, str(error)))
        return found

    def _judged(
        self, entry: str, held: Uuid | None, place: TopicPartition, is_flushed: Callable[[TopicPartition], bool]
    ) -> bool:
        """Whether it is the partition's that we should have, of the topic `held`; else it is set aside, or not ours."""
        if not self._is_by_content(entry):
            self._tell(StrangeDirectory(entry))
            return False
        found = self._topic_id_of(entry)
        if held is not None and (found == held or (found is None and is_flushed(place))):
            return True
        if held is not None and self._was_ours(entry, found, held):
            self._doubt()
        self._tell(StrayDirectory(entry, uuid_text(found) if found else "unknown"))
        self.set_aside(entry, found or ZERO_UUID, STRAY)
        return False

    def _was_ours(self, directory: str, found: Uuid | None, topic_id: Uuid) -> bool:
        """Whether this is no earlier topic's but the one we should have, with its name damaged. (One without records
        was being made when the process was killed.)"""
        names = self._files.listing(directory)
        if not any(name.endswith(LOG) and self._files.file(f"{directory}/{name}").size for name in names):
            return False
        return found is None or _differences(uuid_text(found), uuid_text(topic_id)) == 1

    def _is_by_content(self, directory: str) -> bool:
        """Whether it holds files of a log, or nothing: it was being made. Anything else is somebody's."""
        names = self._names_in(directory)
        return names is not None and (not names or any(map(is_of_a_log, names)))

    def make_way(self, directory: str) -> None:
        """One of an earlier topic may stand where a new one is going to be, or something that is not ours."""
        if self._files.exists(directory):
            self._rename(directory, self._topic_id_of(directory) or ZERO_UUID, STRAY)

    def create(self, directory: str, topic_id: Uuid) -> None:
        self._files.make_directory(directory)
        path = f"{directory}/{PARTITION_METADATA}"
        self._files.write_whole(path, checkpoint.partition_metadata_text(topic_id), durable=False)

    def unflushed_name(self, partition: Partition) -> list[File]:
        """The file that says whose directory it is, if it is not on disk for sure. Without it, records that are would
        belong to nobody after a power loss."""
        if partition.is_name_flushed:
            return []
        partition.is_name_flushed = True
        return [self._files.file(f"{partition.topic_partition}/{PARTITION_METADATA}")]

    def set_aside(self, directory: str, topic_id: Uuid, suffix: str = DELETED) -> None:
        """Away with it at once, if only by name: a topic of the same name can be created. The content goes later."""
        try:
            self._rename(directory, topic_id, suffix)
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

    def _rename(self, directory: str, topic_id: Uuid, suffix: str) -> None:
        # The id tells people whose it was. Another one tells it apart from what stayed of an earlier one.
        for number in count(int.from_bytes(topic_id, "big")):
            renamed = f"{directory[:LONGEST_NAME]}.{number:032x}{suffix}"
            if not self._files.exists(renamed):
                break
        self._files.rename(directory, renamed)
        self._doomed.append(renamed)

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
        return checkpoint.read_partition_metadata(self._files.read_whole(path))


def _differences(one: str, other: str) -> int:
    return sum(each != its for each, its in zip(one, other, strict=True))
