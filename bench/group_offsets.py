"""Offsets of groups: commits by a member, one in flight, and the question what has been committed.

A commit's frame is made once; only the offset in it changes. Its answer is read by the codec. `served` is what a group
needs after its coordinator was away: its offsets as they were committed, and a heartbeat of its old member accepted.
"""

import struct
import time
from collections.abc import Generator

from bench.group_lines import (
    NO_ERROR,
    Conversation,
    Deadline,
    Line,
    Lines,
    WrongAnswerError,
    answer_of,
    asked,
    check,
    frame_of,
)
from bench.group_members import Group, Member
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
COMMIT_VERSION, FETCH_VERSION, FIND_VERSION = 9, 9, 6
NOT_YET = {14, 15, 16}
"""The coordinator is loading, is not available, or is somewhere else."""
RETRY_SECONDS = 0.005
GIVE_UP_SECONDS = 120.0
LINES = 20
"""So many connections ask for all groups after a restart."""
_MARK = 0x1122334455667788


class Committer:
    """A member that commits the offset of one partition, again and again."""

    def __init__(self, group: Group, member: Member, partition: int = 0) -> None:
        self.line = member.line
        self.committed = 0
        self.latencies_ms: list[float] = []
        self.group = group
        self.partition = partition
        place = OffsetCommitRequestPartition(partition, _MARK, -1, "")
        request = OffsetCommitRequest(
            group_id=group.name, generation_id_or_member_epoch=member.number, member_id=member.member_id,
            topics=[OffsetCommitRequestTopic(name=group.topic, partitions=[place])],
        )  # fmt: skip
        self._frame = bytearray(frame_of(OFFSET_COMMIT, COMMIT_VERSION, request))
        self._position = self._frame.index(struct.pack(">q", _MARK))

    def committing(self, until: Deadline) -> Conversation:
        while True:
            yield from self._commit()
            if not until.counts_and_goes_on():
                return

    def committing_alone(self, times: int) -> Conversation:
        for _ in range(times):
            begin = time.perf_counter()
            yield from self._commit()
            self.latencies_ms.append((time.perf_counter() - begin) * 1000)

    def verifying(self) -> Conversation:
        """What was acknowledged last is what the broker says."""
        code, offset = yield from fetched(self.group.name, self.group.topic, self.partition)
        check(code, "offset fetch")
        if offset != self.committed:
            raise WrongAnswerError(f"{self.group.name}: {offset} is committed, where {self.committed} was acknowledged")

    def _commit(self) -> Conversation:
        self.committed += 1
        struct.pack_into(">q", self._frame, self._position, self.committed)
        answer = answer_of(OFFSET_COMMIT, COMMIT_VERSION, (yield bytes(self._frame)))
        check(answer.topics[0].partitions[0].error_code, "commit")


def fetched(name: str, topic: str, partition: int) -> Generator[bytes, memoryview, tuple[int, int]]:
    """The error code and the committed offset."""
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=wanted)])
    answer = yield from asked(OFFSET_FETCH, FETCH_VERSION, request)
    group = answer.groups[0]
    if group.error_code != NO_ERROR:
        return group.error_code, -1
    found = group.topics[0].partitions[0]
    return found.error_code, found.committed_offset


def wait_for_coordinators(lines: Lines, names: list[str], topic: str, port: int) -> None:
    """Until the topic of the offsets exists and the coordinators of all these groups answer."""
    line = lines.open()
    deadline = time.monotonic() + GIVE_UP_SECONDS
    waiting = names
    while waiting:
        if time.monotonic() > deadline:
            raise WrongAnswerError(f"{len(waiting)} groups have no coordinator")
        answer = lines.ask(line, FIND_COORDINATOR, FIND_VERSION, FindCoordinatorRequest(coordinator_keys=waiting[:1]))
        if answer.coordinators[0].error_code == NO_ERROR:
            assert answer.coordinators[0].port == port, "there is one broker"
            waiting = not_served(lines, [line], dict.fromkeys(waiting, (topic, 0, -1)))
        time.sleep(RETRY_SECONDS)
    lines.close(line)


def not_served(lines: Lines, at: list[Line], groups: dict[str, tuple[str, int, int]]) -> list[str]:
    """Which of these groups (with topic, partition and offset) cannot be asked yet. A wrong offset is an error."""
    names = iter(groups)
    left: list[str] = []

    def talk() -> Conversation:
        for name in names:
            topic, partition, offset = groups[name]
            code, found = yield from fetched(name, topic, partition)
            if code in NOT_YET:
                left.append(name)
                continue
            check(code, "offset fetch")
            if found != offset:
                raise WrongAnswerError(f"{name}: {found} is committed, where {offset} was acknowledged")

    lines.hold([(line, talk()) for line in at])
    return left


def wait_until_served(lines: Lines, at: list[Line], committers: list[Committer]) -> None:
    """All groups answer, on these few connections, with the offsets they acknowledged."""
    wanted = {each.group.name: (each.group.topic, each.partition, each.committed) for each in committers}
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while wanted:
        if time.monotonic() > deadline:
            raise WrongAnswerError(f"{len(wanted)} groups are not served")
        left = not_served(lines, at, wanted)
        wanted = {name: wanted[name] for name in left}
        time.sleep(RETRY_SECONDS if left else 0)
