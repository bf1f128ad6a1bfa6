"""Leftovers in a log's directory, and replacements that a crash interrupted.

Compaction writes `.cleaned` files, flushes them, and renames them to `.swap`; then it deletes the segments they were
made from, the first one first, and gives the new files their names. So `.cleaned` files are nobody's yet and go. A
`.swap` file is complete, and replaces whatever is left of the segments it covers. Only if it turns out to be damaged
while the first of those segments is still there, and with it all of them, the old ones stay.
"""

from klamm.facts import Fact, Tell
from klamm.log.files import Files
from klamm.log.names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TEMPORARY,
    TIME_INDEX,
    deleted_suffix,
    file_name,
    is_of_a_log,
    offset_of,
)
from klamm.log.segment import Segment
from klamm.log.settings import LogSettings
from klamm.log.walking import Damaged, whole_batches


class SwapCompleted(Fact):
    directory: str
    base_offset: int
    replaced: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.directory}: completed the replacement of segments {self.replaced} by {self.base_offset}"


def tidied(files: Files, directory: str, settings: LogSettings, now_ms: int, tell: Tell) -> list[str]:
    """Tidy up; returns the names of what is left."""
    names = files.listing(directory)
    leftovers = [name for name in names if name.endswith((CLEANED, DELETED, TEMPORARY)) and is_of_a_log(name)]
    for name in leftovers:
        if name.endswith(DELETED):
            files.discard(f"{directory}/{name}")
        elif name.endswith(CLEANED):
            _discard(files, f"{directory}/{name}")
        else:
            files.remove(f"{directory}/{name}")
    swaps = [base for base in (offset_of(name, LOG + SWAP) for name in names) if base is not None]
    for base_offset in swaps:
        _complete(files, directory, base_offset, settings, now_ms, tell)
    if leftovers or swaps:
        names = files.listing(directory)
    return [name for name in names if not _is_orphan(files, directory, name, names)]


def _complete(files: Files, directory: str, base_offset: int, settings: LogSettings, now_ms: int, tell: Tell) -> None:
    swap = Segment(files, directory, base_offset, settings, now_ms, suffix=SWAP)
    end_offset = base_offset
    try:
        for _, batch, _ in whole_batches(swap.log, 0, base_offset):
            end_offset = batch.next_offset
    except Damaged:
        if files.exists(f"{directory}/{file_name(base_offset, LOG)}"):
            swap.discard()
            return
    replaced = []
    for name in files.listing(directory):
        for kind in (LOG, INDEX, TIME_INDEX, SNAPSHOT):
            offset = offset_of(name, kind)
            if offset is not None and base_offset <= offset < end_offset and (offset, kind) != (base_offset, SNAPSHOT):
                if kind == LOG:
                    _discard(files, f"{directory}/{name}")
                    replaced.append(offset)
                else:
                    files.remove(f"{directory}/{name}")
    swap.rebuild_indexes()
    swap.move("")
    tell(SwapCompleted(directory, base_offset, tuple(replaced)))


def _discard(files: Files, path: str) -> None:
    deleted = path + deleted_suffix(path, files.exists)
    files.rename(path, deleted)
    files.discard(deleted)


def _is_orphan(files: Files, directory: str, name: str, names: list[str]) -> bool:
    """An index without its log, or one that belongs to a replacement which did not happen; removed on the way."""
    for kind in (INDEX, TIME_INDEX):
        offset = offset_of(name, kind)
        if (offset is not None and file_name(offset, LOG) not in names) or name.endswith(kind + SWAP):
            files.remove(f"{directory}/{name}")
            return True
    return False
