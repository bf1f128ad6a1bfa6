"""Whether this node is ready: registered, counted on by the controller, and serving. Or why it is not.

The controller fences a broker that it has not heard of for a session. A broker that is cut off does not hear that it
was fenced; so one whose heartbeats found no answer for as long does not count itself as ready either. Nor does one
that cannot write: its disk is full, or all of its logs are offline.
"""

from klamm.broker.storage import why_all_are_offline
from klamm.ids import NO_BROKER, Now
from klamm.node.node import Node


def why_not_ready(node: Node, now: Now) -> list[str]:
    """In words, one reason a line; nothing if it is ready."""
    broker, membership = node.broker, node.cluster.membership
    if not broker.config.is_broker:
        knows_leader = broker.quorum.leader_id != NO_BROKER
        return [] if knows_leader else ["the quorum has no leader that this node knows of"]
    if node.cluster.leaving.has_begun:
        return ["this broker is stopping"]
    if not membership.is_registered:
        return ["this broker is not registered with a controller"]
    if not membership.is_serving:
        return ["this broker is registered, and the controller does not count on it yet"]
    known = broker.image.brokers.get(broker.node_id)
    if membership.counted_on_ms is None or known is None or known.fenced:
        return ["this broker is fenced"]
    if broker.storage.full is not None:
        return [f"the disk is full: {broker.storage.full}"]
    if (why := why_all_are_offline(broker.partitions)) is not None:
        return [f"the logs of all partitions here are offline: {why}"]
    session_ms = broker.config.integer("broker.session.timeout.ms")
    if now.monotonic_ms - membership.counted_on_ms > session_ms:
        return [f"no controller has answered a heartbeat for {session_ms} ms: this broker may be fenced"]
    return []
