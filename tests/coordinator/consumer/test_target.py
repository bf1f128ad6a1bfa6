"""When a new target is made, whatever the clock that wrote the last one thought."""

from klamm.coordinator.groups.target import is_time_for_a_target


def test_targets_are_an_interval_apart() -> None:
    assert not is_time_for_a_target(10_000, 1_000, 10_999)
    assert is_time_for_a_target(10_000, 1_000, 11_000)
    assert is_time_for_a_target(10_000, 0, 10_000), "without an interval at once"


def test_a_last_target_from_the_future_is_not_waited_for() -> None:
    """A coordinator whose clock was a day ahead wrote it, and the next one's is right."""
    assert is_time_for_a_target(86_400_000 + 10_000, 1_000, 10_000)
