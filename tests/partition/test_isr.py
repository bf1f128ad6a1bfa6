"""Who should be in sync."""

from klamm.partition.isr import is_eligible, wished
from klamm.partition.progress import Progress

ACTIVE = {0: 10, 1: 11, 2: 12, 3: 13}


def follower(
    broker_id: int,
    end_offset: int,
    *,
    epoch: int | None = None,
    caught_up_ms: float = 100.0,
    fetched_ms: float = 110.0,
) -> Progress:
    progress = Progress(broker_id)
    broker_epoch = 10 + broker_id if epoch is None else epoch
    progress.fetched(end_offset, 0, broker_epoch, leader_end=end_offset + 1, now_ms=fetched_ms)
    progress.caught_up_ms = caught_up_ms
    return progress


def wanted(committed: tuple[int, ...], *followers: Progress, joins_at: int = 10, end: int = 20) -> set[int]:
    return wished(committed, followers, ACTIVE, joins_at=joins_at, leader_end=end, now_ms=120.0, max_lag_ms=30.0)


def test_who_keeps_up_stays_and_who_is_late_leaves() -> None:
    assert wanted((0, 1, 2), follower(1, 15), follower(2, 15, caught_up_ms=80.0)) == {0, 1}


def test_who_is_level_with_the_leader_stays_however_long_it_said_nothing() -> None:
    assert wanted((0, 1), follower(1, 20, caught_up_ms=-1e9)) == {0, 1}


def test_who_has_reached_the_watermark_and_the_epochs_start_joins() -> None:
    assert wanted((0,), follower(1, 10), follower(2, 9)) == {0, 1}


def test_who_fell_silent_does_not_join_however_far_it_came() -> None:
    """The watermark stands where it stood when they left: with too few in sync, nothing is committed."""
    silent = [follower(broker_id, 10, caught_up_ms=80.0, fetched_ms=80.0) for broker_id in (1, 2)]
    assert wanted((0,), *silent) == {0}
    assert wanted((0,), silent[0], follower(2, 12)) == {0, 2}, "another one that is back does not bring it along"


def test_who_is_silent_because_it_has_everything_joins() -> None:
    assert wanted((0,), follower(1, 20, fetched_ms=-1e9)) == {0, 1}


def test_one_wish_may_say_both() -> None:
    assert wanted((0, 1), follower(1, 12, caught_up_ms=0.0), follower(2, 20)) == {0, 2}


def test_only_the_active_join_and_only_in_the_life_they_fetched_in() -> None:
    assert wanted((0,), follower(1, 20, epoch=9), follower(4, 20), follower(3, 20)) == {0, 3}
    assert is_eligible(follower(1, 0, epoch=-1), ACTIVE), "an old fetch without a broker epoch"


def test_the_leader_stays() -> None:
    assert wanted((0, 1), follower(1, 1, caught_up_ms=0.0)) == {0}
