"""What a node removes when it starts: directories of topics that were deleted, or that others hold now. Nothing else.

I36. A node says of each directory that it is going to remove (`StrayDirectory`). It has to hold no record, or to name a
topic of which the cluster, as far as anybody has heard, does not want this node to hold that partition. What may have
been acknowledged is kept, whatever was damaged.
"""

from klamm.broker.facts import StrayDirectory
from klamm.facts import Fact
from klamm.ids import uuid_from_text
from klamm.log.names import LOG
from klamm.metadata.image import Image
from klamm.sim.machine import Machine
from klamm.sim.promise import broken


class RemovalChecker:
    def fact(self, machine: Machine, fact: Fact, image: Image) -> None:
        """`image` is the latest that anybody has."""
        if not isinstance(fact, StrayDirectory):
            return
        names = [name for name in machine.disk.names if name.startswith(f"{fact.directory}/") and name.endswith(LOG)]
        if not any(machine.disk.names[name].content for name in names):
            return
        if fact.topic_id == "unknown":
            broken("I36", f"{machine.name} removes {fact.directory} with records, and nobody knows whose they are")
        topic = image.topic_with_id(uuid_from_text(fact.topic_id))
        number = int(fact.directory.rpartition("-")[2])
        state = topic.partitions[number] if topic is not None and number < len(topic.partitions) else None
        if state is not None and machine.node_id in state.replicas:
            broken("I36", f"{machine.name} removes {fact.directory}, which it has to hold")
