"""No array of any API, however long a frame makes it, makes one step long or takes much memory.

Work is counted, in calls of functions, and never timed: `python -m tests.fuzz.clocked` (in `make fuzz`) does that, with
frames of a mebibyte. These are shorter, and long enough to be worked on in many slices.
"""

from collections.abc import Iterator

import pytest

from klamm.controller.topics import MAX_PARTITIONS_PER_REQUEST
from klamm.handlers import TABLE
from klamm.handlers.describe_configs import MOST_SETTINGS
from klamm.node.dispatch import ELEMENTS
from klamm.node.facts import HandlerFailed
from klamm.wire.apis import API_BY_KEY, CREATE_TOPICS, DESCRIBE_CONFIGS
from tests.fuzz.corpus import UNREGISTER_BROKER
from tests.fuzz.crowded import crowded
from tests.fuzz.multiplied import DISTINCT, SAME, Multiplied, frames
from tests.fuzz.steps import CallMeter, cost_of
from tests.node.world import World

FRAME_BYTES = 32 << 10
MOST_CALLS = 60_000
"""In one step: some milliseconds. The longest is that of a slice of some hundred elements that are worked on."""
CALLS_PER_ELEMENT = 2
"""Besides. An array may be gone through at once if that costs next to nothing."""
MOST_BYTES = 64 << 20
"""What a frame of a mebibyte may add. What a short one adds is counted as often as the long one could hold it."""

MOST_ANSWERED = {DESCRIBE_CONFIGS: MOST_SETTINGS // 40, CREATE_TOPICS: MAX_PARTITIONS_PER_REQUEST}
"""Whatever the request names: the settings of so many topics are told, so many partitions are created."""

KEYS = [key for key in sorted(TABLE) if key != UNREGISTER_BROKER]


@pytest.fixture(scope="module")
def crowd() -> Iterator[tuple[World, bytes]]:
    world, topic_id = crowded(partitions=300, members=100)
    yield world, topic_id
    world.stop()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: API_BY_KEY[key].name)
def test_no_step_is_long(crowd: tuple[World, bytes], key: int) -> None:
    world, topic_id = crowd
    too_much = []
    for frame in frames(FRAME_BYTES, topic_id, [key], (SAME, DISTINCT)):
        cost = cost_of(world, frame.body, CallMeter())
        if cost.longest > MOST_CALLS + CALLS_PER_ELEMENT * frame.count:
            too_much.append(f"{frame}: {cost.longest:.0f} calls in one step")
        _check_facts(world, frame)
    assert not too_much, "\n".join(too_much)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: API_BY_KEY[key].name)
def test_no_frame_takes_much_memory(crowd: tuple[World, bytes], key: int) -> None:
    world, topic_id = crowd
    too_much = []
    for frame in frames(FRAME_BYTES, topic_id, [key], (DISTINCT,)):
        if frame.version != API_BY_KEY[key].max_version:
            continue
        cost = cost_of(world, frame.body, None)
        more = min((1 << 20) / FRAME_BYTES, ELEMENTS / frame.objects)
        if key in MOST_ANSWERED:
            more = min(more, max(1.0, MOST_ANSWERED[key] / frame.count))
        if cost.peak_bytes * more > MOST_BYTES:
            too_much.append(f"{frame}: {cost.peak_bytes >> 10} KiB for {FRAME_BYTES >> 10}")
        _check_facts(world, frame)
    assert not too_much, "\n".join(too_much)


def _check_facts(world: World, frame: Multiplied) -> None:
    failed = world.told_of(HandlerFailed)
    assert not failed, f"{frame}: {failed[0].traceback}"
    world.told.clear()
