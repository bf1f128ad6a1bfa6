"""Who answers where a cluster would, found out before a command asks it something: it may be another one."""

import shlex
from pathlib import Path

from klamm.local.listeners import cluster_on
from klamm.local.problems import LocalError
from klamm.local.processes import state_of
from klamm.local.record import ClusterRecord
from klamm.local.topology import listed

ANSWER_SECONDS = 1.0


def check_nobody_else_answers(directory: Path, known: ClusterRecord) -> None:
    """Another cluster may have the ports of brokers that do not run: who means the one must not change the other. Or
    their processes cannot be seen from here (another container), and the one who answers is it."""
    dead = [node for node in known.brokers if node.process is None or state_of(node.process) == "dead"]
    if not dead:
        return
    # Only of a cluster that does not run as a whole this is asked.
    from klamm.local.asking import Address, NoAnswer
    from klamm.local.view import cluster_id_seen

    try:
        there, answering = cluster_id_seen([Address(known.host, node.port) for node in dead], ANSWER_SECONDS)
    except NoAnswer:
        return
    if answering == known.cluster_id:
        return
    whose, add = ("another cluster", f"--bootstrap {there}")
    if (other := cluster_on(there.port)) is not None:
        whose, add = f"the cluster in {other}", f"--dir {shlex.quote(str(other))}"
    ours = f"the cluster in {directory}"
    who, alive = f"{ours} does not run", [node for node in known.brokers if node not in dead]
    if alive:
        who = f"of {ours} {listed([node.node_id for node in dead])} {'is' if len(dead) == 1 else 'are'} dead"
        add += f"; for the rest of this one, --bootstrap {known.host}:{alive[0].port}"
    raise LocalError(f"{who}, and {whose} answers at {there}, where it would; if you mean that one, add {add}")
