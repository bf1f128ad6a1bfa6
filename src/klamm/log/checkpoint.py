"""Kafka's small text files: what a broker or a log has to know again after a restart.

Offset checkpoints (`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`, `replication-offset-checkpoint`,
`cleaner-offset-checkpoint`) and `leader-epoch-checkpoint` are a version line, a count line and a line for each entry.
`partition.metadata` and `meta.properties` are names and values. `.kafka_cleanshutdown` tells that nothing has to be
recovered; whoever reads it deletes it.

Every reader returns None for what is not exactly such a file. The caller then does without: a checkpoint only saves
work, it is never the only copy of a fact. Nor is a file read that is larger than such a file can be (`read_small`).
"""

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise

from klamm.ids import Epoch, Offset, TopicPartition, Uuid, uuid_from_text, uuid_text
from klamm.log.files import Files

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

SMALL_BYTES = 64 << 10
LARGEST_BYTES = 64 << 20
"""Of a file with an entry for each partition, or for each producer."""
MOST_EPOCHS_BYTES = 1 << 20
MOST_ENTRIES = 500_000

_VERSION = "0"


def read_small(files: Files, path: str, most_bytes: int = SMALL_BYTES) -> bytes:
    """All of a file, or nothing of one that is larger than any such file: its reader takes that for damage."""
    if files.file(path).size > most_bytes:
        return b""
    return files.read_whole(path)


def offsets_text(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    return _lines(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def read_offsets(data: bytes) -> dict[TopicPartition, Offset] | None:
    entries = _entries(data, 3)
    if entries is None:
        return None
    try:
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except ValueError:
        return None


def epochs_text(epochs: Iterable[tuple[Epoch, Offset]]) -> bytes:
    return _lines(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def read_epochs(data: bytes) -> list[tuple[Epoch, Offset]] | None:
    """None also if epochs or offsets do not grow."""
    entries = _entries(data, 2)
    if entries is None:
        return None
    try:
        epochs = [(int(epoch), int(start_offset)) for epoch, start_offset in entries]
    except ValueError:
        return None
    grows = all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(epochs))
    return epochs if grows and (not epochs or min(epochs[0]) >= 0) else None


def partition_metadata_text(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def read_partition_metadata(data: bytes) -> Uuid | None:
    """The id of the topic that a directory belongs to."""
    lines = _text(data).splitlines()
    if len(lines) != 2 or not lines[0].startswith("version: ") or not lines[1].startswith("topic_id: "):
        return None
    try:
        return uuid_from_text(lines[1].removeprefix("topic_id: ").strip())
    except ValueError:
        return None


def meta_properties_text(cluster_id: str, node_id: int, directory_id: Uuid) -> bytes:
    properties = {
        "cluster.id": cluster_id,
        "directory.id": uuid_text(directory_id),
        "node.id": str(node_id),
        "version": "1",
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items()).encode()


def read_meta_properties(data: bytes) -> dict[str, str] | None:
    """None unless it says which node of which cluster the directory belongs to."""
    lines = [line.strip() for line in _text(data).splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    properties = {name.strip(): value.strip() for name, _, value in pairs}
    return properties if {"version", "cluster.id", "node.id"} <= properties.keys() else None


def clean_shutdown_text(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def read_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch under which the broker was stopped."""
    try:
        content = json.loads(data)
        epoch = content["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return None
    return epoch if isinstance(epoch, int) else None


def _lines(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode()


def _entries(data: bytes, fields: int) -> list[list[str]] | None:
    if data.count(b"\n") > MOST_ENTRIES + 2:
        return None
    lines = _text(data).splitlines()
    # Without its last line break a file is torn, perhaps in the middle of a number.
    if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2) or not data.endswith(b"\n"):
        return None
    entries = [line.split() for line in lines[2:]]
    return entries if all(len(entry) == fields for entry in entries) else None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
