"""Looks at a cluster, made up for tests: six brokers on two racks, a witness, and the topic of S8."""

from dataclasses import replace

from klamm.ids import TopicPartition
from klamm.local.figures import Figures
from klamm.local.look import Look
from klamm.local.record import NodeRecord
from klamm.local.topology import planned
from klamm.local.view import PartitionSeen

RING = (0, 3, 1, 4, 2, 5)
NODES = tuple(NodeRecord(each.node_id, each.rack, each.roles, 19092 + each.node_id) for each in planned(6, 2))


def place(partition: int, topic: str = "invoice") -> TopicPartition:
    return TopicPartition(topic, partition)


def healthy() -> Look:
    """A thousand records of a hundred bytes in each partition, on every replica."""
    partitions = {}
    for number in range(10):
        replicas = tuple(RING[(number + each) % 6] for each in range(3))
        partitions[place(number)] = PartitionSeen("invoice", number, replicas[0], replicas, replicas)
    held = {broker: [each for each, seen in partitions.items() if broker in seen.replicas] for broker in sorted(RING)}
    return Look(
        at_seconds=100.0,
        nodes=NODES,
        states={node.node_id: "running" for node in NODES},
        is_answered=True,
        controller=0,
        quorum_epoch=4,
        live=frozenset(RING),
        partitions=partitions,
        sizes={broker: dict.fromkeys(places, 100_000) for broker, places in held.items()},
        reached={broker: dict.fromkeys(places, 1_000) for broker, places in held.items()},
        ends=dict.fromkeys(partitions, 1_000),
        figures={broker: Figures({"invoice": 0}) for broker in held},
    )


def without(look: Look, broker_id: int) -> Look:
    """The broker is dead, and out of sync wherever it was a replica."""

    def led_by_another(each: PartitionSeen) -> PartitionSeen:
        in_sync = tuple(replica for replica in each.in_sync if replica != broker_id)
        return replace(each, in_sync=in_sync, leader=in_sync[0] if each.leader == broker_id else each.leader)

    return replace(
        look,
        at_seconds=look.at_seconds + 1,
        states={**look.states, broker_id: "dead"},
        live=look.live - {broker_id},
        partitions={key: led_by_another(each) for key, each in look.partitions.items()},
    )


def grown(look: Look, records: int, seconds: float = 1.0) -> Look:
    """So many more records in every partition, on the replicas that are in sync."""

    def more(broker: int, key: TopicPartition, amount: int) -> int:
        return amount if key in look.partitions and broker in look.partitions[key].in_sync else 0

    return replace(
        look,
        at_seconds=look.at_seconds + seconds,
        ends={key: end + records for key, end in look.ends.items()},
        sizes={
            broker: {key: size + more(broker, key, 100 * records) for key, size in sizes.items()}
            for broker, sizes in look.sizes.items()
        },
        reached={
            broker: {key: end + more(broker, key, records) for key, end in ends.items()}
            for broker, ends in look.reached.items()
        },
    )
