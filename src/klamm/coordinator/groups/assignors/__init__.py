"""The assignors a group of KIP-848 can choose from, by the name a client asks for."""

from klamm.coordinator.groups.assignors.assignor import Assignment, Assignor, MemberSpec, TopicSpec
from klamm.coordinator.groups.assignors.range import Range
from klamm.coordinator.groups.assignors.uniform import Uniform

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "MemberSpec", "TopicSpec"]

# The first is the default, as in Kafka's `group.consumer.assignors`.
ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in (Uniform(), Range())}
