"""A cluster of machines: who votes, where it stands, and what can be seen of it from outside."""

from collections.abc import Iterator, Sequence

from klamm.ids import BrokerId
from klamm.metadata.image import EMPTY, Image
from klamm.sim.machine import Machine
from klamm.sim.network import Network
from klamm.sim.world import World

FIRST_PORT = 9_000


class Cluster:
    """Settings are Kafka's; `voters` are the first so many nodes: those who may vote, and do in the beginning."""

    def __init__(
        self,
        world: World,
        network: Network,
        brokers: int,
        voters: int,
        settings: dict[str, str],
        racks: Sequence[str] = (),
    ) -> None:
        self.world = world
        self.network = network
        self.voters = tuple(range(voters))
        quorum = ",".join(f"{number}@node-{number}:{FIRST_PORT + number}" for number in self.voters)
        self.machines: dict[BrokerId, Machine] = {}
        self._latest = EMPTY
        for number in range(brokers):
            own = {
                "node.id": str(number),
                "process.roles": "broker,controller" if number in self.voters else "broker",
                "controller.quorum.voters": quorum,
                "listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + number}",
            }
            if racks:
                own["broker.rack"] = racks[number % len(racks)]
            machine = Machine(world, network, number, FIRST_PORT + number, settings | own)
            self.machines[number] = machine
            network.add(machine)

    def start(self) -> None:
        for machine in self.machines.values():
            machine.start()

    @property
    def addresses(self) -> dict[BrokerId, int]:
        return {number: machine.port for number, machine in self.machines.items()}

    @property
    def running(self) -> Iterator[Machine]:
        return (machine for machine in self.machines.values() if machine.is_running)

    def controller(self) -> Machine | None:
        """The active one, if there is exactly one that thinks so."""
        active = [each for each in self.running if not each.is_paused and each.broker.controller is not None]
        return active[0] if len(active) == 1 else None

    def voter_sets(self) -> list[set[BrokerId]]:
        """Who votes, as each node that runs knows it: the latest in its log, committed or not."""
        return [set(machine.broker.quorum.voters) for machine in self.running]

    def votes_well(self, node_id: BrokerId) -> bool:
        """It runs, votes with the disk it has, and has all that is committed."""
        machine = self.machines[node_id]
        if not machine.is_running or machine.is_paused:
            return False
        best = max(each.broker.quorum.high_watermark for each in self.running)
        quorum = machine.broker.quorum
        return quorum.is_voter and quorum.log.end_offset >= best and quorum.leader_id >= 0

    def latest_image(self) -> Image:
        """The cluster as the node that has heard most of it knows it, or knew it when it ran."""
        return self._latest

    def note_image(self, machine: Machine) -> None:
        if machine.broker.image.offset > self._latest.offset:
            self._latest = machine.broker.image
