"""Where rows are: a file's name says which share of the keys it may hold, so that nobody has to look into the others.

Rows with a key are dealt into buckets by a hash of the key, as Spark's `repartition` does it. Bucket 3 of 8 goes to one
task, which then needs only the files of that bucket: all the keys of a table are read once a batch, by all tasks
together. The number of buckets is a power of two and may differ from batch to batch: a file of bucket 3 of 8 belongs
into bucket 1 of 2, and a file of 1 of 2 may hold keys of 1, 3, 5 and 7 of 8. A file that somebody else wrote, or that
was written for another key, may hold any.

Many small batches make many small files. Small ones of a size (within a factor of eight) are merged when there are
eight of them, by whichever task writes next to them anyway, in the same commit; so a row is rewritten a few times in
all, and a table has few files.
"""

import hashlib
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

AS_MANY = 8
SMALL_BYTES = 4 << 20
"""Larger files stay as they are: to write them again would cost a busy table a third of its speed."""
LARGE_BYTES = 64 << 20
"""A task that has more to write begins another file."""
SMALLEST_TIER_BYTES = 64 << 10
BUCKET_BYTES = 8 << 20
MOST_BUCKETS = 256

NAME = re.compile(r"[^/]+\.(?P<key>[0-9a-f]{8})\.(?P<bucket>\d+)of(?P<buckets>\d+)\.[0-9a-f]{32}\.parquet")


@dataclass(frozen=True)
class Place:
    """A bucket of so many, by the key with this digest."""

    key: str
    bucket: int
    buckets: int


@dataclass(frozen=True)
class Held:
    """A file of the table."""

    path: str
    size: int
    place: Place | None


def held(path: str, size: int) -> Held:
    found = NAME.fullmatch(Path(path).name)
    place = Place(found["key"], int(found["bucket"]), int(found["buckets"])) if found else None
    return Held(path, size, place)


def new_name(stem: str, place: Place | None) -> str:
    where = f".{place.key}.{place.bucket}of{place.buckets}" if place else ""
    return f"{stem}{where}.{uuid.uuid4().hex}.parquet"


def stem_of(application: str, batch_id: int) -> str:
    """The beginning of the names of a batch's files. Two applications never share one, however they are called."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "-", application)[:60]
    return f"part-{readable}-{digest(application)}-{batch_id:08d}"


def digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def may_hold_keys_of(file: Held, place: Place) -> bool:
    theirs = file.place
    if theirs is None or theirs.key != place.key:
        return True
    fewer = min(theirs.buckets, place.buckets)
    return theirs.bucket % fewer == place.bucket % fewer


def belongs_into(file: Held, place: Place) -> bool:
    """Every key it holds is of this bucket, so one task may do with it what it likes."""
    return is_dealt(file, place.key, place.buckets) and may_hold_keys_of(file, place)


def is_dealt(file: Held, key: str, buckets: int) -> bool:
    return file.place is not None and file.place.key == key and file.place.buckets >= buckets


def to_merge(files: Sequence[Held]) -> list[Held]:
    """Those of each size of which there are too many."""
    tiers: dict[int, list[Held]] = {}
    for file in files:
        if file.size < SMALL_BYTES:
            tiers.setdefault(_tier(file.size), []).append(file)
    return [file for tier in sorted(tiers) if len(tiers[tier]) >= AS_MANY for file in tiers[tier]]


def buckets_for(bytes_expected: int, cores: int) -> int:
    """A small table is one bucket; a large one has as many as there are cores, rounded down to a power of two."""
    buckets = 1
    while buckets * 2 <= min(cores, MOST_BUCKETS) and buckets * BUCKET_BYTES < bytes_expected:
        buckets *= 2
    return buckets


def directory_of(path: str) -> str:
    """A directory that the driver and all executors see under the same name."""
    scheme, colon, rest = path.partition(":")
    if colon and re.fullmatch(r"[a-z][a-z0-9+]+", scheme):
        if scheme != "file":
            raise ValueError(
                f"{path}: tables are kept on a file system that the driver and all executors share, "
                f"given as a plain path or as file:; {scheme}: is not one."
            )
        path = "/" + rest.lstrip("/")
    return os.path.abspath(path)  # noqa: PTH100


def _tier(size: int) -> int:
    tier = 0
    while size >= SMALLEST_TIER_BYTES * AS_MANY**tier:
        tier += 1
    return tier
