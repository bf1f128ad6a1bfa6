"""The names of a log's files. They are Kafka's: twenty digits of a base offset, and what the file is.

A segment is `.log` with `.index` and `.timeindex`; `.snapshot` is the producers' state before its base offset. While
compaction replaces segments its files end in `.cleaned`, then in `.swap`. A file that ends in `.deleted` is gone, only
its bytes may still be on their way to a reader, or wait to be removed.
"""

import re
from collections.abc import Callable

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
SNAPSHOT = ".snapshot"

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
"""Whose log it is."""
TEMPORARY = ".tmp"
"""What is written whole ends so until it is."""
CUT = ".cut"
"""What was cut off behind damage and is kept: nobody reads it, and only deleting the topic removes it."""

OF_A_LOG = re.compile(rf"([0-9]{{20}}(\.[a-z0-9]+)+|({LEADER_EPOCHS}|partition\.metadata)(\{TEMPORARY})?)")


def file_name(offset: int, kind: str) -> str:
    return f"{offset:020d}{kind}"


def offset_of(name: str, kind: str) -> int | None:
    """The offset in a name of this kind; None for any other name."""
    digits = name[:20]
    return int(digits) if name[20:] == kind and digits.isdecimal() and digits.isascii() else None


def deleted_suffix(path: str, exists: Callable[[str], bool]) -> str:
    """What to add to the name of a deleted file. An earlier one of the same name may still be there, and renaming onto
    it would free its blocks at once."""
    suffix, number = DELETED, 0
    while exists(path + suffix):
        number += 1
        suffix = f".{number}{DELETED}"
    return suffix


def is_of_a_log(name: str) -> bool:
    """Whatever it is of one, also while it is being replaced. All else in its directory was put there by somebody."""
    return OF_A_LOG.fullmatch(name) is not None
