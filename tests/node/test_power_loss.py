"""Acceptance 3 where kill -9 cannot reach: the disk forgets what was not flushed and tears the last write.

A drawn workload runs on a node until the power goes before a drawn call of the disk; of the unflushed, a drawn part is
left. After the restart everything that was promised must be there: records acknowledged under `flush.messages=1` at
their offsets, topics, settings, each batch of an idempotent producer once. Of a topic that promised less, a beginning
of what was sent. Several lives in a row, because recovery, too, can be interrupted.

More seeds: KLAMM_POWER_LOSSES=1000.
"""

import contextlib
import os
from random import Random

import pytest

from klamm.errors import ErrorCode
from klamm.sim.disk import Crashed
from tests.node.requests import (
    NAMED,
    acknowledged,
    batch_of,
    creation,
    deletion,
    leader_epoch,
    metadata,
    offsets,
    produce,
    read_all,
)
from tests.node.world import Client, World

SEEDS = int(os.environ.get("KLAMM_POWER_LOSSES", "60"))
LIVES = 4
SETTINGS = {"internal_segment_bytes": "700", "index_interval_bytes": "100"}


class Promises:
    """What clients were told, and what they only hope for."""

    def __init__(self) -> None:
        self.topics: dict[str, bytes] = {}
        self.perhaps: set[str] = set()
        """Topics whose creation or deletion was not answered."""
        self.safe: dict[int, bytes] = {}
        """Acknowledged under flush.messages=1, by offset."""
        self.hoped: set[bytes] = set()
        self.quick: list[bytes] = []
        self.sequence = 0
        self.unanswered: bytes | None = None
        """The idempotent producer's batch that it will send again."""
        self.epoch = 0


class Story:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.promises = Promises()
        self.world = World()
        self.count = 0
        self.client = self.world.connect()
        for name, configs in (("safe", {"flush_messages": "1"}), ("quick", {}), ("once", {"flush_messages": "1"})):
            self.create(name, **configs)

    def run(self) -> None:
        for _ in range(LIVES):
            disk = self.world.disk
            disk.calls, disk.crash_at = 0, self.random.randrange(1, 150)
            with contextlib.suppress(Crashed):
                self.live()
            self.restart()
            self.check()

    def live(self) -> None:
        for _ in range(60):
            self.random.choice([self.write_safe, self.write_safe, self.write_quick, self.write_once, self.other])()

    def restart(self) -> None:
        """The power may go again while the node starts."""
        self.world.disk.crash(self.random)
        while True:
            self.world.disk.crash_at = self.random.choice([None, self.random.randrange(40)])
            try:
                self.world.start_again()
                break
            except Crashed:
                self.world.disk.crash(self.random)
        self.world.disk.crash_at = None
        self.client = self.world.connect()

    # What clients do.

    def value(self) -> bytes:
        self.count += 1
        return b"%06d" % self.count + b"." * self.random.randrange(80)

    def write_safe(self) -> None:
        values = [self.value() for _ in range(self.random.randrange(1, 4))]
        self.promises.hoped |= set(values)
        answer = acknowledged(self.client.ask(produce("safe", *values, acks=self.random.choice([1, -1])), NAMED))
        assert answer.error_code == ErrorCode.NONE
        for number, value in enumerate(values):
            self.promises.safe[answer.base_offset + number] = value

    def write_quick(self) -> None:
        value = self.value()
        self.promises.quick.append(value)
        assert acknowledged(self.client.ask(produce("quick", value), NAMED)).error_code == ErrorCode.NONE

    def write_once(self) -> None:
        """An idempotent producer that sends again whatever was not answered."""
        promises = self.promises
        value = promises.unanswered or b"%d" % promises.sequence
        promises.unanswered = value
        batch = batch_of(value, producer=(7, 0, promises.sequence))
        answer = acknowledged(self.client.ask(produce("once", batch=batch), NAMED))
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        promises.sequence += 1
        promises.unanswered = None

    def other(self) -> None:
        kind = self.random.randrange(4)
        if kind == 0:
            self.create(f"topic-{self.random.randrange(3)}", retention_ms="86400000")
        elif kind == 1 and len(self.promises.topics) > 3:
            self.delete(self.random.choice(sorted(set(self.promises.topics) - {"safe", "quick", "once"})))
        else:
            self.world.advance(self.random.choice([10, 1_000, 61_000]))

    def create(self, name: str, **configs: str) -> None:
        self.promises.perhaps.add(name)
        answer = self.client.ask(creation(name, **SETTINGS | configs)).topics[0]
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        if answer.error_code == ErrorCode.NONE:
            self.promises.topics[name] = answer.topic_id
        self.promises.perhaps.discard(name)

    def delete(self, name: str) -> None:
        self.promises.perhaps.add(name)
        assert self.client.ask(deletion(name)).responses[0].error_code == ErrorCode.NONE
        del self.promises.topics[name]
        self.promises.perhaps.discard(name)

    # What must be true.

    def check(self) -> None:
        self.check_topics()
        self.check_safe()
        self.check_quick()
        self.check_once()
        epoch = leader_epoch(self.client, "safe")
        assert epoch > self.promises.epoch
        self.promises.epoch = epoch

    def check_topics(self) -> None:
        promises = self.promises
        names = [f"topic-{number}" for number in range(3)] + ["safe", "quick", "once"]
        for found in self.client.ask(metadata(*names)).topics:
            exists = found.error_code == ErrorCode.NONE
            if found.name in promises.perhaps:
                promises.topics.pop(found.name, None)
                if exists:
                    promises.topics[found.name] = found.topic_id
            assert exists == (found.name in promises.topics), found.name
            if exists:
                assert found.topic_id == promises.topics[found.name]
                assert found.partitions[0].error_code == ErrorCode.NONE
                assert offsets(self.client, found.name)[0] == 0
        promises.perhaps.clear()

    def check_safe(self) -> None:
        stored = read_all(self.client, "safe")
        for offset, value in self.promises.safe.items():
            assert stored[offset : offset + 1] == [value], f"acknowledged at {offset} and not there"
        assert set(stored) <= self.promises.hoped and len(stored) == len(set(stored))
        self.promises.safe = dict(enumerate(stored))

    def check_quick(self) -> None:
        stored = read_all(self.client, "quick")
        assert stored == self.promises.quick[: len(stored)]
        self.promises.quick = stored

    def check_once(self) -> None:
        stored = read_all(self.client, "once")
        sent = self.promises.sequence
        expected = [b"%d" % number for number in range(sent)]
        assert stored in (expected, [*expected, b"%d" % sent])
        if self.promises.unanswered is not None:
            self.write_once()
            assert read_all(self.client, "once") == [*expected, b"%d" % sent]


@pytest.mark.parametrize("block", range(6))
def test_what_was_promised_survives_the_loss_of_power(block: int) -> None:
    for seed in range(block, SEEDS, 6):
        story = Story(seed)
        try:
            story.run()
        except Exception as failure:
            failure.add_note(f"seed {seed}, life {story.world.lives}")
            raise


def test_a_crash_says_nothing_to_those_who_waited() -> None:
    """A producer whose flush never ended was told nothing, and that is what makes the rest true."""
    world = World()
    client: Client = world.connect()
    client.ask(creation("safe", flush_messages="1"))
    world.holds_flushes = True
    client.post(produce("safe", b"x"), version=NAMED)
    world.disk.crash(Random(1))
    assert client.answers == []


def test_whose_directory_it_is_is_on_disk_with_the_first_record() -> None:
    """`partition.metadata` decides at the next start whether the directory is ours or a stray that goes. Torn, it could
    speak for another topic, and acknowledged records would go with it (seed 546 told so)."""
    world = World()
    client = world.connect()
    client.ask(creation("safe", flush_messages="1"))
    assert acknowledged(client.ask(produce("safe", b"x"), NAMED)).error_code == ErrorCode.NONE
    inode = world.disk.names["safe-0/partition.metadata"]
    assert inode.durable == bytes(inode.content)


def test_a_directory_that_names_no_topic_after_a_power_loss_may_be_an_earlier_ones() -> None:
    """Its name was lost, so nothing in it was promised to anybody; its records may be those of a topic that was deleted
    (`klamm sim --seed 124` told so)."""
    world = World()
    client = world.connect()
    client.ask(creation("quick"))
    assert acknowledged(client.ask(produce("quick", b"x"), NAMED)).error_code == ErrorCode.NONE
    client.ask(creation("other"))  # The names are on disk with this.
    for name, inode in world.disk.names.items():
        if name.startswith("quick-0/"):
            inode.replace(bytearray() if name.endswith("partition.metadata") else inode.content)
    world.disk.crash(Random(1))
    world.start_again()
    assert offsets(world.connect(), "quick") == (0, 0)
