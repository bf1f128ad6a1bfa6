"""What stands behind damage: found wherever it is, counted once, and kept byte by byte."""

from random import Random

from klamm.facts import Fact
from klamm.log.log import Log
from klamm.log.names import is_of_a_log
from klamm.log.salvage import RecordsSetAside, behind
from klamm.sim.disk import Disk
from tests.log.making import DIRECTORY, NOW, batch_of, opened, values_of

FIRST = f"{DIRECTORY}/00000000000000000000.log"
COUNT = 300


def written(disk: Disk) -> Log:
    log = opened(disk)
    log.settings = log.settings.__class__()
    for number in range(COUNT):
        log.append_as_leader(batch_of(b"%d" % number * 10), 0, NOW)
    return log


def test_batches_behind_several_holes_are_found_and_read_once() -> None:
    disk = Disk()
    log = written(disk)
    segment = log.segments.all[0]
    size = segment.size
    content = disk.names[FIRST].content
    for offset in (100, 200):
        place = segment.place_of(offset)
        assert place is not None
        content[place.position + 8 : place.position + 70] = Random(offset).randbytes(62)
    start = segment.place_of(99)
    assert start is not None
    reads = []
    disk.failure = lambda call, path: reads.append(call)  # type: ignore[func-returns-value]
    found = behind(segment, start.position, 99, ())
    assert (found.batches, found.end_offset) == (COUNT - 100 - 2, COUNT)
    assert len(reads) < 20 and size < 1 << 20, "not a mebibyte for each batch"


def test_what_is_cut_is_kept_byte_by_byte() -> None:
    disk = Disk()
    log = written(disk)
    place = log.segments.all[0].place_of(150)
    assert place is not None
    content = disk.names[FIRST].content
    content[place.position + 70] ^= 1
    whole = bytes(content)
    for turn in range(2):
        content[:] = whole
        told: list[Fact] = []
        log = opened(disk, told=told)
        assert len(values_of(log)) == 150
        [fact] = told
        assert isinstance(fact, RecordsSetAside) and fact.batches == COUNT - 151
        assert fact.kept == (f"{150:020d}.{turn}.cut",), "under a name of its own"
        assert bytes(disk.names[f"{DIRECTORY}/{fact.kept[0]}"].content) == whole[place.position :]
        assert is_of_a_log(fact.kept[0]), "and goes with its topic"
