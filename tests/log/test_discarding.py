"""What is deleted leaves the log at once, by name; its bytes go later, in pieces. No crash brings half of them back."""

from random import Random

import pytest

from klamm.log.log import Log
from klamm.log.names import DELETED
from klamm.log.settings import LogSettings
from klamm.sim.disk import Disk
from tests.log.making import DIRECTORY, NOW, batch_of, batch_of_size, opened, values_of
from tests.log.test_compaction import COMPACT, compact, put, table

THREE_A_SEGMENT = LogSettings(segment_bytes=300, index_interval_bytes=100, retention_ms=-1, file_delete_delay_ms=0)
PIECE = 200


def filled(disk: Disk, batches: int = 12) -> Log:
    log = opened(disk, THREE_A_SEGMENT)
    for _ in range(batches):
        log.append_as_leader(batch_of_size(100), 0, NOW)
    files, _ = log.files_to_flush()
    disk.flush(files)
    return log


def deleted(disk: Disk) -> list[str]:
    return [name for name in disk.listing(DIRECTORY) if name.endswith(DELETED)]


def test_retention_truncation_and_a_start_leave_what_is_large_to_others() -> None:
    """Deleting 3 GB once held everybody up for a second."""
    disk = Disk(piece_bytes=PIECE)
    log = filled(disk)
    log.advance_start_offset(4)
    log.delete_expired_segments(NOW, 12)
    log.truncate_to(8)
    log.truncate_fully_and_start_at(20)
    sizes = sum(len(disk.names[f"{DIRECTORY}/{name}"].content) for name in deleted(disk) if ".log." in name)
    assert sizes == 1100, "all but the batch that was cut is still there, under other names"
    disk.end_life()
    before = deleted(disk)
    opened(disk, THREE_A_SEGMENT, start_offset=20)
    assert deleted(disk) == before, "nor does the next start wait for it"
    disk.remove_discarded()
    assert not deleted(disk)


def test_a_segment_deleted_again_under_its_name_does_not_replace_the_first() -> None:
    """Renaming onto a large file frees it, there and then."""
    disk = Disk()
    log = filled(disk, 6)
    log.truncate_fully_and_start_at(0)
    for _ in range(6):
        log.append_as_leader(batch_of_size(100), 0, NOW)
    log.truncate_fully_and_start_at(0)
    names = [name for name in deleted(disk) if ".log." in name]
    assert names == [
        "00000000000000000000.log.1.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000003.log.1.deleted",
        "00000000000000000003.log.deleted",
    ]
    disk.remove_discarded()
    assert not deleted(disk)


@pytest.mark.parametrize("part", range(4))
def test_no_crash_gives_back_a_part_of_what_compaction_replaced(part: int) -> None:
    """Names that changed since the last flush may come back, bytes that were cut do not: so names go to disk first."""
    for seed in range(50 * part, 50 * part + 50):
        compacted_and_crashed(Random(seed))


def compacted_and_crashed(random: Random) -> None:
    disk = Disk(piece_bytes=PIECE)
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k%d" % (number % 4), b"%d" % number))
    log.roll(NOW)
    files, end = log.files_to_flush()
    disk.flush(files)
    log.flushed(end)
    expected = table(log)
    compact(disk, log)
    last = next(each for each in reversed(disk.discarded) if ".log." in each.paths[0])
    removal = disk.removal(last)
    for _ in range(random.randint(1, 4)):
        next(removal, None)
    disk.crash(random)
    log = opened(disk, COMPACT, recovery_point=end)
    assert table(log) == expected
    disk.remove_discarded()
    assert not deleted(disk)


def test_a_follower_cuts_off_no_more_than_a_piece_at_once() -> None:
    disk = Disk(piece_bytes=PIECE)
    log = opened(disk, LogSettings())
    for number in range(20):
        log.append_as_leader(batch_of(b"%d" % number), 0, NOW)
    size = log.size_bytes // 20
    ends = []
    while log.end_offset > 3:
        before = log.size_bytes
        assert log.truncate_to(3)
        assert before - log.size_bytes <= PIECE + size
        ends.append(log.end_offset)
        assert [value for _, value in values_of(log)] == [b"%d" % number for number in range(log.end_offset)]
    assert len(ends) > 3 and ends[-1] == 3
    assert not log.truncate_to(3)


def test_a_batch_that_is_larger_than_a_piece_goes_at_once() -> None:
    log = opened(Disk(piece_bytes=PIECE), LogSettings())
    for _ in range(3):
        log.append_as_leader(batch_of_size(500), 0, NOW)
    log.truncate_to(0)
    assert log.end_offset == 2
