"""Files that are small by nature, and are not: their size is looked at before anything is read."""

import tracemalloc
from pathlib import Path

import pytest

from klamm.log import checkpoint
from klamm.log.log import Log
from klamm.runtime.files import RealFiles
from tests.log.making import DIRECTORY, NOW, SMALL, batch_of, opened, values_of

TEN_MILLION = 10**7
MOST_BYTES = 8 << 20


def test_a_checkpoint_of_ten_million_epochs_takes_no_memory(tmp_path: Path) -> None:
    """It took 2.1 GB. What it says is in the batches as well."""
    files = RealFiles(tmp_path)
    log: Log = opened(files)
    for number in range(5):
        log.append_as_leader(batch_of(b"%d" % number), number, NOW)
    log.close_cleanly()
    epochs = log.epochs.entries()
    lines = b"".join(b"%d %d\n" % (number, number) for number in range(100_000))
    with (tmp_path / DIRECTORY / "leader-epoch-checkpoint").open("wb") as file:
        file.write(b"0\n%d\n" % TEN_MILLION)
        for _ in range(TEN_MILLION // 100_000):
            file.write(lines)
    del lines
    tracemalloc.start()
    log = opened(RealFiles(tmp_path), SMALL, clean=True, recovery_point=5)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MOST_BYTES
    assert log.epochs.entries() == epochs and len(values_of(log)) == 5


@pytest.mark.parametrize("entries", [checkpoint.MOST_ENTRIES + 1])
def test_more_offsets_than_there_can_be_partitions(entries: int) -> None:
    data = b"0\n%d\n" % entries + b"a 0 1\n" * entries
    tracemalloc.start()
    assert checkpoint.read_offsets(data) is None
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MOST_BYTES
