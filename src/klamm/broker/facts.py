"""What a broker announces about its logs."""

from klamm.facts import Fact


class LogsOpened(Fact):
    count: int
    clean: bool

    def __str__(self) -> str:
        how = "after a clean shutdown" if self.clean else "and recovered them, because the last shutdown was not clean"
        return f"opened {self.count} logs {how}"


class StrayDirectory(Fact):
    """It is known to have been deleted, or to hold nothing."""

    level = "warning"
    directory: str
    topic_id: str

    def __str__(self) -> str:
        return f"{self.directory} is removed: its topic id {self.topic_id} is not in the metadata (deleted meanwhile)"


class DirectoryKept(Fact):
    level = "error"
    directory: str
    kept_as: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.directory} is not used ({self.reason}) and kept as {self.kept_as}: nothing removes it. `klamm "
            "storage check` says what is in it; when nobody needs it any more, remove it"
        )


class DirectoriesKept(Fact):
    level = "warning"
    names: tuple[str, ...]

    def __str__(self) -> str:
        some = ", ".join(self.names[:3]) + (f" and {len(self.names) - 3} more" if len(self.names) > 3 else "")
        return f"kept and not used, since an earlier start: {some}; `klamm storage check` says what is in them"


class NameMended(Fact):
    level = "warning"
    directory: str
    topic_id: str

    def __str__(self) -> str:
        return f"{self.directory}/partition.metadata was damaged, and names topic id {self.topic_id} again"


class RecordsMissing(Fact):
    """It had them, as a checkpoint tells, and they are not on its disk."""

    level = "error"
    partition: str
    end_offset: int
    known_end: int
    whence: str

    def __str__(self) -> str:
        return (
            f"{self.partition}: records up to offset {self.known_end} were here, those from {self.end_offset} on are "
            f"missing; {self.whence}"
        )


class RecordsMissingWithin(Fact):
    """A segment that is not the last one lost its end."""

    level = "error"
    partition: str
    offset: int
    next_offset: int

    def __str__(self) -> str:
        return (
            f"{self.partition}: the records from offset {self.offset} to {self.next_offset - 1} are missing, and "
            "readers pass over them; stop this broker, and `klamm storage repair` has it fetch them again, if another "
            "broker has them"
        )


class SegmentDamaged(Fact):
    level = "error"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.reason}; `klamm storage repair` mends it when this broker is stopped"


class StrangeDirectory(Fact):
    level = "warning"
    name: str

    def __str__(self) -> str:
        return f"{self.name} is called like a partition and holds no log; it is left alone"


class StrangeFiles(Fact):
    level = "warning"
    directory: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        found = f"{self.names[0]}{f' and {len(self.names) - 1} more' if len(self.names) > 1 else ''}"
        return f"{self.directory} is no partition any more, but holds what is of no log: {found}; that is left alone"


class PartitionFailed(Fact):
    level = "error"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"{self.partition} is offline: {self.reason}"


class ProducersForgotten(Fact):
    level = "warning"
    count: int
    of_partition: int
    of_broker: int

    def __str__(self) -> str:
        return (
            f"forgot {self.count} idempotent producers before their time, because there are more than "
            f"klamm.partition.max.producers={self.of_partition} or klamm.broker.max.producers={self.of_broker} allow: "
            "a retry of theirs would be written twice (kafka_server_replicamanager_produceridcount counts them; "
            "this is said once)"
        )


class MemberRefused(Fact):
    level = "warning"
    reason: str

    def __str__(self) -> str:
        return f"a member was not let into its group: {self.reason} (klamm_group_members_bytes; this is said once)"


class StorageFull(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return (
            f"the disk is full: {self.reason}. What needs room is refused until there is some: delete topics or "
            "records, shorten the retention, or make the disk larger"
        )


class StorageHasRoom(Fact):
    free_bytes: int

    def __str__(self) -> str:
        return f"the disk has room again: {self.free_bytes} bytes are free"


class StorageFailing(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"the disk fails: {self.reason}. Look at the system's own log; what else fails meanwhile is only counted"


class StorageQuiet(Fact):
    failures: int

    def __str__(self) -> str:
        return f"the disk has not failed for a minute, after {self.failures} failures in all"


class DamagedCheckpoint(Fact):
    level = "warning"
    name: str

    def __str__(self) -> str:
        return f"{self.name} is damaged and not believed; more of the logs is checked than would have been needed"


class CompactionFailed(Fact):
    level = "error"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"{self.partition} could not be compacted and is as it was: {self.reason}"


class CompactionPassedOver(Fact):
    level = "error"
    partition: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.partition} is compacted, but for what cannot be read, which stays: {self.reason}. Once no reader"
            " needs what stands before it, DeleteRecords removes it."
        )


class PartitionRevived(Fact):
    partition: str
    end_offset: int

    def __str__(self) -> str:
        return f"{self.partition} is back, up to offset {self.end_offset}: there is room on the disk again"


class DirectoryStays(Fact):
    level = "error"
    directory: str
    reason: str

    def __str__(self) -> str:
        return f"{self.directory} could not be set aside or removed, and is tried again later: {self.reason}"


class RetentionFailed(Fact):
    level = "error"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"{self.partition} could not be searched for old records, nothing was deleted: {self.reason}"


class CheckpointFailed(Fact):
    level = "error"
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} could not be written: {self.reason}"


class NotClosedCleanly(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"the next start has to recover the logs, because this end could not be noted: {self.reason}"


class LogCut(Fact):
    level = "warning"
    partition: str
    end_offset: int
    leader: int

    def __str__(self) -> str:
        return (
            f"{self.partition} dropped what its leader {self.leader} does not have, and ends at {self.end_offset} now"
        )


class InSyncReplicasChanged(Fact):
    partition: str
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.partition} has {_listed(self.after)} in sync, no longer {_listed(self.before)}"


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "nobody"


class GroupsLoaded(Fact):
    partition: str
    count: int

    def __str__(self) -> str:
        return f"coordinates the groups of {self.partition}, after {self.count} records"


class GroupsNotLoaded(Fact):
    level = "error"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"cannot coordinate the groups of {self.partition}: {self.reason}"


class GroupsNotWritten(Fact):
    level = "warning"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"what became of groups of {self.partition} could not be written: {self.reason}"


class GroupRecordSkipped(Fact):
    level = "warning"
    partition: str
    reason: str

    def __str__(self) -> str:
        return f"skipped a record of {self.partition} that cannot be read: {self.reason}"
