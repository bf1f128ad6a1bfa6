"""Waiting until nodes that were just started can be used.

A broker is ready when it has said so in its log and then names every broker that belongs there to a client who asks
it: a topic with a replica on each of them can be created now. A witness, and a broker whose quorum has no majority, is
up when its port takes connections. A node that ends meanwhile ends the waiting, with its last words.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from klamm.local.asking import Address, NoAnswer, takes_connections
from klamm.local.problems import NodeDidNotStart
from klamm.local.processes import Process, Watch
from klamm.local.view import live_brokers

SIGN = b"takes connections"
LOOK_AGAIN_SECONDS = 0.004
ANSWER_SECONDS = 2.0
LAST_WORDS = 20
"""So many lines of its log are shown when a node did not start."""


class Starting(NamedTuple):
    node_id: int
    process: Process
    address: Address
    log: Path
    said_before: int
    """How long the log was before this start."""
    will_serve: bool
    """A broker in a cluster that can decide, which will take clients."""

    def said(self) -> bytes:
        with self.log.open("rb") as log:
            log.seek(self.said_before)
            return log.read()

    def is_up(self) -> bool:
        return SIGN in self.said() if self.will_serve else takes_connections(self.address, ANSWER_SECONDS)

    def did_not_start(self, what_happened: str) -> NodeDidNotStart:
        said = self.said().decode(errors="replace").splitlines()[-LAST_WORDS:]
        return NodeDidNotStart(self.node_id, what_happened, self.log, "\n".join(said))


def wait_ready(starting: Sequence[Starting], timeout_seconds: float, on_ready: Callable[[int], None]) -> None:
    """Until all of them are. `on_ready` hears of each as it comes up."""
    with Watch(each.process for each in starting) as watch:
        patience = Patience(starting, watch, time.monotonic() + timeout_seconds)
        waiting = list(starting)
        while waiting:
            for each in [each for each in waiting if each.is_up()]:
                waiting.remove(each)
                on_ready(each.node_id)
            if waiting:
                patience.wait_a_moment(waiting[0], "does not take connections")
        serving = [each for each in starting if each.will_serve]
        everybody = {each.node_id for each in serving}
        for each in serving:
            while not everybody <= _named_by(each):
                patience.wait_a_moment(each, "does not know all other brokers")


def _named_by(each: Starting) -> set[int]:
    try:
        return live_brokers(each.address, ANSWER_SECONDS)
    except NoAnswer:
        return set()


class Patience(NamedTuple):
    """How long we go on waiting: not after the deadline, and not once one of them is dead."""

    starting: Sequence[Starting]
    watch: Watch
    deadline: float

    def wait_a_moment(self, for_whom: Starting, problem: str) -> None:
        if time.monotonic() > self.deadline:
            raise for_whom.did_not_start(f"still {problem}")
        ended = self.watch.wait_ended(LOOK_AGAIN_SECONDS)
        for each in self.starting:
            if each.process in ended:
                raise each.did_not_start("ended before it was ready")
