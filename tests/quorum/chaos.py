"""Drawn lives of a quorum: bad weather, crashes, cuts, wiped disks, snapshots and changes of voters, from one seed.

First everything goes wrong and the promises are checked after every event (safety). Then everything heals, and the
quorum has to be whole again: a leader, all logs alike, everything applied everywhere, new records committed (liveness).
In some lives somebody forges requests all the time; when all is whole, that must not cost the leader its place.
"""

from random import Random

from klamm.errors import KafkaError
from klamm.ids import BrokerId
from klamm.log.files import DiskFailed
from klamm.metadata.records import MetadataRecord
from klamm.quorum.identity import ReplicaKey
from tests.quorum.checks import Checks
from tests.quorum.forger import Forger
from tests.quorum.world import Node, Weather, World

HEALED = Weather()


class Chaos:
    def __init__(self, seed: int, *, steps: int = 40) -> None:
        self.random = random = Random(seed)
        voters = random.choice([1, 2, 3, 3, 3, 3, 5])
        weather = Weather(
            loss=random.choice([0.0, 0.0, 0.02, 0.2]),
            doubling=random.choice([0.0, 0.05, 0.3]),
            delay_ms=random.choice([0.2, 1.0, 5.0, 50.0]),
            flush_ms=random.choice([0.2, 1.0, 20.0]),
            notices_death=random.choice([0.0, 0.5, 1.0]),
        )
        properties = {
            "controller.quorum.fetch.max.bytes": random.choice(["1", "300", "1048576"]),
            "controller.quorum.fetch.snapshot.max.bytes": random.choice(["100", "1048576"]),
            "metadata.max.retention.bytes": random.choice(["0", "0", "2000", "104857600"]),
        }
        self.world = World(seed, voters, random.choice([0, 1, 2]), weather, properties)
        self.checks = Checks(self.world)
        self.steps = steps
        self.breaks = random.random() < 0.3
        self.wiped: BrokerId | None = None
        self.wipes = random.random() < 0.5
        # A set of two has no disk to lose.
        self.changes_voters = not self.wipes and random.random() < 0.6
        of_forger = Random(f"{seed} forger")
        self.forger = Forger(self.world, of_forger) if of_forger.random() < 0.5 else None

    def run(self) -> None:
        world = self.world
        try:
            world.start(*(each for each in world.nodes if self.random.random() < 0.8))
            for _ in range(self.steps):
                getattr(self, "_" + self.random.choice(ACTIONS))()
                if self.forger is not None:
                    self.forger.forge(self.forger.random.choice([0, 1, 5]))
                world.run(self.random.choice([0.5, 5, 50, 400, 1500]))
            self._heal()
        except BaseException:
            print("\n".join(world.story[-60:]))
            for node in world.nodes.values():
                print(node.node_id, node.raft)
            raise

    # What may happen.

    def _propose(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.world.try_propose()

    def _kill(self) -> None:
        if alive := self._alive():
            self.world.kill(self.random.choice(alive).node_id)

    def _start(self) -> None:
        if dead := [node.node_id for node in self.world.nodes.values() if node.raft is None]:
            node_id = self.random.choice(dead)
            try:
                self.world.start(node_id)
            except DiskFailed:
                self.world.kill(node_id)

    def _break(self) -> None:
        """One call to a disk fails, sooner or later."""
        if self.breaks and (alive := self._alive()):
            call = self.random.choice(["flush", "flush", "write_whole", "append", "truncate", "rename", "remove"])
            self.random.choice(alive).disk.fail_once(call, self.random.randint(0, 3))
            self.world.tell(f"a {call} is to fail")

    def _cut(self) -> None:
        nodes = list(self.world.nodes)
        if self.random.random() < 0.5:
            self.world.isolate(self.random.choice(nodes))
        else:
            self.world.cut.add((self.random.choice(nodes), self.random.choice(nodes)))
        self.world.tell(f"cut: {sorted(self.world.cut)}")

    def _mend(self) -> None:
        self.world.heal()

    def _resign(self) -> None:
        for node in self._alive():
            if node.alive.is_leader:
                node.alive.resign(self.world.now)
                self.world.tell(f"{node.node_id} resigns")
                self.world.settle(node)

    def _wipe(self) -> None:
        """One disk at a time: the next only when the last one is a voter again and has everything."""
        if self.wipes and (self.wiped is None or self._has_returned(self.wiped)) and len(self.world.configured) >= 3:
            self.wiped = self.random.choice(list(self.world.configured))
            self.world.wipe(self.wiped)

    def _snapshot(self) -> None:
        for node in self._alive():
            raft = node.alive
            latest = raft._journal.snapshots.latest
            if node.applied_end > (latest.end_offset if latest else 0) and raft._writer is None:
                self.world.take_snapshot(node.node_id)
                self.world.tell(f"{node.node_id} takes a snapshot below {node.applied_end}")

    def _clean(self) -> None:
        for node in self._alive():
            node.alive._clean_ms = 0
            node.alive.tick(self.world.now)
            self.world.settle(node)

    def _change_voters(self) -> None:
        """Several in a row, of which only the first may be taken."""
        for _ in range(self.random.randint(1, 3) if self.changes_voters else 0):
            self._change_one_voter()

    def _change_one_voter(self) -> None:
        leader = self.world.leader()
        if leader is None:
            return
        node = self.world.nodes[
            self.random.choice([each for each in self.world.nodes if each in self.world.configured])
        ]
        try:
            if node.node_id in leader.alive.voters:
                if len(leader.alive.voters) > 2:
                    leader.alive.remove_voter(node.node_id, node.directory_id, self.world.now)
                    self.world.tell(f"{leader.node_id} removes voter {node.node_id}")
            else:
                self.world.add_voter(leader.node_id, node.node_id)
                self.world.tell(f"{leader.node_id} adds voter {node.node_id}")
        except KafkaError:
            return
        self.world.settle(leader)

    # Healing.

    def _heal(self) -> None:
        world = self.world
        world.weather = HEALED
        world.heal()
        world.tell("everything heals")
        for node in world.nodes.values():
            node.disk.failure = lambda call, path: None
            if node.raft is not None and node.raft.log.failed is not None:
                world.kill(node.node_id)
            if node.raft is None:
                world.start(node.node_id)
        # Somebody who was cut off may still believe for a moment that it leads.
        assert any(self._agrees() for _ in range(3)), "it takes nothing new"
        if self.forger is not None:
            self._besiege(self.forger)

    def _besiege(self, forger: "Forger") -> None:
        world = self.world
        world.run(world.nodes[0].alive._me.settings.fetch_timeout_ms)
        before = self._led()
        for _ in range(100):
            forger.forge(3)
            world.run(forger.random.uniform(0, 40))
            assert self._led() == before, f"a forger ended {before}"

    def _led(self) -> list[tuple[BrokerId, int]]:
        return [(node.alive.leader_id, node.alive.epoch) for node in self.world.nodes.values()]

    def _agrees(self) -> bool:
        world = self.world
        world.run(30_000, self._is_whole)
        assert self._is_whole(), "it is not whole again"
        leader = world.leader()
        assert leader is not None
        record = world.propose(leader.node_id)
        world.run(5_000, lambda: self._has_everywhere(record))
        return self._has_everywhere(record) and all(node.applied == leader.applied for node in world.nodes.values())

    def _has_everywhere(self, record: MetadataRecord) -> bool:
        return all(record in node.applied for node in self.world.nodes.values())

    def _is_whole(self) -> bool:
        leader = self.world.leader()
        if leader is None:
            return False
        ends = {(node.alive.log.end_offset, node.alive.high_watermark) for node in self.world.nodes.values()}
        return len(ends) == 1 and (self.wiped is None or self._has_returned(self.wiped))

    def _has_returned(self, node_id: BrokerId) -> bool:
        leader, node = self.world.leader(), self.world.nodes[node_id]
        if leader is None or node.raft is None:
            return False
        voters = leader.alive._journal.voters
        return (
            voters.latest.has(ReplicaKey(node_id, node.directory_id))
            and voters.latest_offset < leader.alive.high_watermark
            and node.raft.log.recovery_point >= voters.latest_offset
        )

    def _alive(self) -> list[Node]:
        return [node for node in self.world.nodes.values() if node.raft is not None]


ACTIONS = [
    *["propose"] * 10,
    *["kill"] * 3,
    *["start"] * 5,
    *["cut"] * 2,
    *["mend"] * 3,
    "resign",
    *["wipe"] * 2,
    *["snapshot"] * 2,
    *["clean"] * 3,
    "break",
    *["change_voters"] * 2,
]
