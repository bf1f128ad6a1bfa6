"""Decisions about many partitions are made, and taken up, in slices: others are served in between, and a topic is there
as a whole or not at all. Counted is what is done in a step, never how long it takes."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from klamm import slicing
from klamm.errors import ErrorCode
from klamm.node.events import Event, Flushed, Yielded
from klamm.partition.partition import Partition
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.node.requests import create, creation, deletion, metadata, produce
from tests.node.world import Client, World

SLICE = 10
MANY = 100


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "ELEMENTS_A_SLICE", SLICE)


class Paused:
    """A world in which nothing that belongs to a later turn happens, until somebody lets it. In each step it counts how
    often something was done to a partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, done: str) -> None:
        self.world = World()
        self.client, self.other = self.world.connect(), self.world.connect()
        create(self.other, "orders", 1)
        self.count = 0
        self.most_in_a_step = 0
        self.turns = 0
        original: Callable[..., Any] = getattr(Partition, done)

        def counting(partition: Partition, *arguments: Any) -> Any:
            self.count += 1
            return original(partition, *arguments)

        monkeypatch.setattr(Partition, done, counting)
        self._settle, self.world._settle = self.world._settle, lambda: None  # type: ignore[method-assign]

    def turn(self) -> None:
        """One slice, and what was flushed."""
        before = self.count
        self.turns += 1
        event: Event = Yielded()
        if self.world.flushes:
            effect = self.world.flushes.popleft()
            event = Flushed(effect.token, self.world._flushed(effect))
        self.world.step(event)
        self.most_in_a_step = max(self.most_in_a_step, self.count - before)

    def turns_until_answered(self) -> Iterator[None]:
        while not self.client.answers:
            assert self.turns < 10 * MANY, "it is never answered"
            self.turn()
            yield


@pytest.fixture
def creating(monkeypatch: pytest.MonkeyPatch) -> Paused:
    return Paused(monkeypatch, "take_role")


def test_others_are_served_between_the_slices(creating: Paused) -> None:
    creating.client.post(creation("many", MANY))
    served = 0
    for _ in creating.turns_until_answered():
        creating.other.post(metadata("orders"))
        served += creating.other.take().topics[0].error_code == ErrorCode.NONE
    assert creating.client.take().topics[0].error_code == ErrorCode.NONE
    assert creating.most_in_a_step <= SLICE
    assert served >= 3 * MANY // SLICE, "decided, written down, taken up"


def test_a_topic_is_there_as_a_whole_or_not_at_all(creating: Paused) -> None:
    creating.client.post(creation("many", MANY))
    for _ in creating.turns_until_answered():
        known = creating.world.broker.image.topics.get("many")
        assert known is None or len(known.partitions) == len(creating.world.broker.partitions.by_name("many") or ())
    assert len(creating.world.broker.image.topics["many"].partitions) == MANY


@pytest.mark.parametrize("turns", [1, 5, 12, 20, 25, 30])
def test_a_node_that_ends_in_the_middle_has_all_of_it_or_nothing(creating: Paused, turns: int) -> None:
    creating.client.post(creation("many", MANY))
    for _ in range(turns):
        creating.turn()
    creating.world._settle = creating._settle  # type: ignore[method-assign]
    creating.world.kill()
    image, held = creating.world.broker.image, creating.world.broker.partitions.by_name("many") or ()
    assert ("many" in image.topics) == (len(held) == MANY)
    assert len(held) in (0, MANY)


def test_partitions_go_in_slices_and_what_is_gone_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Paused(monkeypatch, "news_for_followers")
    paused.world._settle = paused._settle  # type: ignore[method-assign]
    create(paused.client, "many", MANY)
    gone = list(paused.world.broker.partitions.by_name("many") or ())
    paused.world._settle = lambda: None  # type: ignore[method-assign]
    paused.client.post(deletion("many"))
    counts = []
    for _ in paused.turns_until_answered():
        counts.append(sum(partition is not None and partition.deleted for partition in gone))
        (described,) = ask(paused.other, metadata("many")).topics
        assert (described.error_code == ErrorCode.NONE) == ("many" in paused.world.broker.image.topics)
        answer = ask(paused.other, produce("many", b"late"), version=9).responses[0].partition_responses[0]
        if counts[-1]:
            assert answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert counts[-1] == MANY and paused.world.broker.partitions.by_name("many") is None
    assert max(after - before for before, after in pairwise(counts)) <= SLICE


def test_a_default_that_touches_every_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Paused(monkeypatch, "configure")
    paused.world._settle = paused._settle  # type: ignore[method-assign]
    create(paused.client, "many", MANY)
    paused.count = 0
    paused.world._settle = lambda: None  # type: ignore[method-assign]
    setting = AlterableConfig(name="log.retention.ms", config_operation=0, value="77000")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[setting])
    paused.client.post(IncrementalAlterConfigsRequest(resources=[resource]))
    for _ in paused.turns_until_answered():
        pass
    assert paused.client.take().responses[0].error_code == ErrorCode.NONE
    assert paused.count == MANY + 1 and paused.most_in_a_step <= SLICE
    assert {each.log.settings.retention_ms for each in paused.world.broker.partitions} == {77_000}


def test_what_users_want_is_decided_in_the_order_it_came(creating: Paused) -> None:
    """Also where the second wish is small: it may be about what the first one makes."""
    creating.client.post(creation("many", MANY))
    creating.other.post(deletion("many"))
    for _ in creating.turns_until_answered():
        pass
    while not creating.other.answers:
        creating.turn()
    assert creating.client.take().topics[0].error_code == ErrorCode.NONE
    assert creating.other.take().responses[0].error_code == ErrorCode.NONE


def test_a_long_answer_is_made_and_encoded_in_slices(creating: Paused) -> None:
    names = [f"topic-{number}" for number in range(60)]
    request = creation(names[0])
    request.topics = [creation(name, 2).topics[0] for name in names]
    creating.client.post(request)
    for _ in creating.turns_until_answered():
        pass
    answer = creating.client.take()
    assert [(each.name, each.error_code, each.num_partitions) for each in answer.topics] == [(n, 0, 2) for n in names]
    assert all(each.configs for each in answer.topics)


def ask(client: Client, request: Any, version: int | None = None) -> Any:
    client.post(request, version=version)
    return client.take()
