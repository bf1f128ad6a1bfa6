"""Which experiments there are. Each is a module of this package with three names:

- `PLAN`, what it will do, in a few sentences;
- `LAYOUT`, the cluster it wants;
- `measured(stage)`, which does it and returns what it measured.

The list stands here, so that it can be shown without importing any of them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from klamm.lab.measured import Measured
    from klamm.lab.stage import Layout, Stage

EXPERIMENTS = {
    "acks": "acks 0, 1 and all while the leader dies: sent, acknowledged, lost",
    "isr": "a follower falls behind, leaves the in-sync replicas, catches up and returns",
    "min-insync": "min.insync.replicas: what is refused when too few replicas are in sync, and what goes on",
    "failover": "the leader is killed under load: who leads next, how long clients wait, what they lose",
    "racks": "replicas over two racks, by the table; then a whole rack is gone",
    "committed": "a record that only the leader has is not seen; then the leader dies, and it is truncated",
    "keys": "which partition a record goes to: by its number, by its key, without either",
    "groups": "a consumer group of fewer, as many and more members than partitions; one is killed",
}


class Experiment(NamedTuple):
    name: str
    title: str
    plan: str
    layout: "Layout"
    measured: "Callable[[Stage], Measured]"


def experiment(name: str) -> Experiment:
    module = import_module(f"klamm.lab.{name.replace('-', '_')}")
    return Experiment(name, EXPERIMENTS[name], module.PLAN, module.LAYOUT, module.measured)
