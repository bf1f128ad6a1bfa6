"""Who was voted for in which epoch, on disk before anybody is told: the file `quorum-state`, in Kafka's JSON.

A voter that forgot its vote could give it twice in one epoch and elect two leaders. So a state that cannot be read is
not replaced by a guess: the node does not start.
"""

import json
from dataclasses import dataclass
from typing import Any

from klamm.ids import NO_BROKER, ZERO_UUID, BrokerId, Epoch, Uuid, uuid_from_text, uuid_text
from klamm.log.checkpoint import read_small
from klamm.log.files import Files

FILE_NAME = "quorum-state"
WRITTEN_VERSION = 1

LAST_EPOCH: Epoch = 2**30
"""With an election every ten milliseconds a quorum would take four months to get here: a later epoch is damaged or
forged. Up to here an epoch fits into every message, and so does the next one."""

BEYOND_REACH = (
    f"no election gets beyond epoch {LAST_EPOCH}: this is damaged, or a forged vote that an earlier version believed. "
    "Where most voters start, move this node's directory away: the node comes back as a new voter. Where they do not, "
    "stop all voters, set leaderEpoch to 1000000 (higher than every true epoch) and leaderId and votedId to -1 in the "
    "file quorum-state of each of them, and start them"
)


class UnreadableElection(Exception):  # noqa: N818
    """The file is there and is not what we wrote."""


@dataclass(frozen=True, slots=True)
class Election:
    epoch: Epoch = 0
    leader_id: BrokerId = NO_BROKER
    voted_id: BrokerId = NO_BROKER
    voted_directory_id: Uuid = ZERO_UUID


def remembers(files: Files, directory: str) -> bool:
    """Whether this node ever took note of an epoch."""
    return files.exists(f"{directory}/{FILE_NAME}")


def read_election(files: Files, directory: str) -> Election:
    """What this node last promised; an election of epoch 0 if it never did."""
    path = f"{directory}/{FILE_NAME}"
    if not files.exists(path):
        return Election()
    try:
        found: dict[str, Any] = json.loads(read_small(files, path))
        version = int(found["data_version"])
        if version not in (0, WRITTEN_VERSION):
            raise UnreadableElection(f"{path} has data_version {version}, which this version of Klamm does not know")
        voted_id = int(found["votedId"])
        directory_text = found["votedDirectoryId"] if version >= 1 and voted_id != NO_BROKER else uuid_text(ZERO_UUID)
        epoch = int(found["leaderEpoch"])
        if not 0 <= epoch <= LAST_EPOCH:
            raise UnreadableElection(f"{path}: leaderEpoch is {epoch}, and {BEYOND_REACH}")
        return Election(
            epoch=epoch,
            leader_id=int(found["leaderId"]),
            voted_id=voted_id,
            voted_directory_id=uuid_from_text(directory_text),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnreadableElection(f"{path} is damaged: whom this node voted for cannot be read") from None


def write_election(files: Files, directory: str, election: Election) -> None:
    """Returns when it is on the disk."""
    assert 0 <= election.epoch <= LAST_EPOCH, "what is remembered can be told to others, today and after a restart"
    content = {
        "leaderId": election.leader_id,
        "leaderEpoch": election.epoch,
        "votedId": election.voted_id,
        "votedDirectoryId": uuid_text(election.voted_directory_id),
        "data_version": WRITTEN_VERSION,
    }
    files.write_whole(f"{directory}/{FILE_NAME}", json.dumps(content, separators=(",", ":")).encode(), durable=True)
