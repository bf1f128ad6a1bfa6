"""A broker that was killed on a machine that stayed up has lost nothing, and may say so."""

from klamm.broker.life import FILE_NAME, UNKNOWN, Life
from klamm.log.files import DiskFull
from klamm.sim.disk import Disk


def test_after_a_kill_the_last_epoch_is_remembered() -> None:
    disk = Disk()
    Life(disk, "monday").begin(17)
    assert Life(disk, "monday").epoch_before() == 17


def test_a_machine_that_was_started_anew_may_have_lost_something() -> None:
    disk = Disk()
    Life(disk, "monday").begin(17)
    assert Life(disk, "tuesday").epoch_before() == UNKNOWN


def test_a_disk_that_broke_a_promise_is_not_trusted_in_this_life_nor_in_the_next() -> None:
    disk = Disk()
    life = Life(disk, "monday")
    life.begin(17)
    life.distrust()
    assert Life(disk, "monday").epoch_before() == UNKNOWN
    life.begin(18)
    assert Life(disk, "monday").epoch_before() == UNKNOWN


def test_where_nobody_can_tell_nothing_is_claimed() -> None:
    disk = Disk()
    Life(disk, None).begin(17)
    assert not disk.exists(FILE_NAME)
    assert Life(disk, None).epoch_before() == UNKNOWN


def test_a_note_that_cannot_be_read_says_nothing() -> None:
    disk = Disk()
    disk.write_whole(FILE_NAME, b"{")
    assert Life(disk, "monday").epoch_before() == UNKNOWN


def test_a_life_that_was_never_told_its_epoch_is_taken_up_by_the_next() -> None:
    disk = Disk()
    Life(disk, "monday").begin(17)
    Life(disk, "monday").ask(17, b"i" * 16)
    again = Life(disk, "monday")
    assert (again.epoch_before(), again.incarnation_before()) == (17, b"i" * 16)
    again.begin(18)
    assert (again.epoch_before(), again.incarnation_before()) == (18, None)
    Life(disk, "monday").ask(18, b"j" * 16)
    assert Life(disk, "tuesday").incarnation_before() is None


def test_a_life_that_could_not_note_its_beginning_is_not_taken_up() -> None:
    """It has done something since, and the next one must not go on as if it had not."""
    disk = Disk()
    life = Life(disk, "monday")
    life.ask(17, b"i" * 16)
    disk.failure = lambda call, path: DiskFull("no space left") if call == "write_whole" else None
    life.begin(18)
    disk.failure = None
    again = Life(disk, "monday")
    assert (again.epoch_before(), again.incarnation_before()) == (UNKNOWN, None)
