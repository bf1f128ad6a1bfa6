"""What recovery does with records that stand behind damage: it is asked how much it may cut, and keeps what it cuts.

A write that was interrupted leaves the beginning of a batch at the end of the log, or, if the machine went down,
anything in the place of what had not been flushed. Such a torn tail was promised to nobody and is cut off. Whole
batches behind a bad one are something else: they may have been acknowledged. Where nobody else has them the log does
not open (`LogDamaged`); where others do, or the machine itself went down, the log ends before the damage, and what
stood behind is kept beside it, in files that end in `.cut`. Nothing reads those, and only deleting the topic removes
them.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Fact
from klamm.ids import Offset
from klamm.log.files import File, Files
from klamm.log.names import CUT, file_name
from klamm.log.segment import Segment
from klamm.log.walking import Damaged, Step, next_whole_batch, whole_batches

COPY_BYTES = 1024 * 1024


class LogDamaged(KafkaError):  # noqa: N818
    """The log cannot be opened without losing records that were safe."""

    def __init__(self, why: object) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, str(why))


class Care(NamedTuple):
    """What is known of the last life of a log, and of others who have its records."""

    keeps_writes: bool | None = False
    """Whether the machine has been up since the log was written: all that was written is there, only the last write may
    be incomplete. None if nobody can tell."""
    is_only_copy: bool = False
    """Nobody else is known to have these records."""
    is_flushed_first: bool = False
    """Every record was on disk before anybody relied on it, as of the metadata: what was whole once is never cut."""

    def may_not_cut(self, *, was_flushed: bool) -> bool:
        """Whether whole batches behind damage are needed: nobody else has them, and no lost write explains it."""
        if was_flushed:
            return True
        return (bool(self.keeps_writes) and self.is_only_copy) or (
            self.keeps_writes is not False and self.is_flushed_first
        )


NO_CARE = Care()


class Behind(NamedTuple):
    """Whole batches that stand behind damage."""

    batches: int
    end_offset: Offset
    """-1 if there are none."""


class TailCut(Fact):
    level = "warning"
    directory: str
    end_offset: Offset
    reason: str

    def __str__(self) -> str:
        return f"{self.directory}: the log now ends at {self.end_offset}: {self.reason}"


class RecordsSetAside(TailCut):
    """More than a torn tail was cut off."""

    level = "error"
    batches: int
    kept: tuple[str, ...]

    def __str__(self) -> str:
        what = f"{self.batches} whole batches stood behind it and are" if self.batches else "what stood there is"
        return (
            f"{self.directory}: {self.reason}. The log ends at offset {self.end_offset} now; {what} kept in "
            f"{', '.join(self.kept)}, which nothing reads or removes: when the replicas are in sync again and nothing "
            "is missing, remove these files"
        )


def whole_batches_behind(file: File, position: int, least_offset: Offset) -> Iterator[Step]:
    """Past whatever is damaged, also further on."""
    while (step := next_whole_batch(file, position, least_offset)) is not None:
        yield step
        position, least_offset = step.end, step.next_offset
        with suppress(Damaged):
            # Until the next damage there is no need to search.
            for at, batch, _ in whole_batches(file, position, least_offset):
                position, least_offset = at + batch.size_bytes, batch.next_offset
                yield Step(at, position, batch.base_offset, least_offset)


def behind(segment: Segment, position: int, least_offset: Offset, later: Sequence[Segment]) -> Behind:
    """What stands behind the damage at this position, in this segment and in later ones."""
    found, end_offset = 0, -1
    for each, start in ((segment, position + 1), *((each, 0) for each in later)):
        for step in whole_batches_behind(each.log, start, max(least_offset, end_offset)):
            found += 1
            end_offset = step.next_offset
    return Behind(found, end_offset)


def keep_aside(
    files: Files, directory: str, segment: Segment | None, position: int, end_offset: Offset, later: Sequence[Segment]
) -> tuple[str, ...]:
    """Copy what stands in this segment from this position on, and rename later segments; the names of what is kept. It
    is on disk when this returns, and the log is as it was, but for the later segments."""
    kept = []
    if segment is not None and position < segment.size:
        name = free_name(files, directory, f"{end_offset:020d}")
        copy = files.file(f"{directory}/{name}")
        while piece := segment.log.read(position + copy.size, min(COPY_BYTES, segment.size - position - copy.size)):
            copy.append(piece)
        files.flush([copy])
        copy.close()
        kept.append(name)
    for each in reversed(later):
        name = free_name(files, directory, file_name(each.base_offset, ".log"))
        log = each.log
        each.remove_indexes()
        log.rename(f"{directory}/{name}")
        log.close()
        kept.append(name)
    return tuple(kept)


def free_name(files: Files, directory: str, stem: str) -> str:
    return next(name for number in count() if not files.exists(f"{directory}/{(name := f'{stem}.{number}{CUT}')}"))
