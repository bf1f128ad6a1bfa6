"""Frames one by one, each against a broker that has nothing else to do: which of them does the harm?"""

import tempfile
import time
from pathlib import Path

from tests.fuzz.corpus import TOPICS
from tests.fuzz.mutations import Mutated
from tests.harness.klamm_node import KlammNode
from tests.hostile.raw import framed
from tests.hostile.target import Target

HARMFUL_SECONDS = 1.0
HARMFUL_MIB = 16.0
PATIENCE_SECONDS = 2.0


def culprit_among(frames: list[Mutated]) -> Mutated | None:
    """The first that kills the broker, keeps it from answering somebody else, or makes it much larger. None, if it
    takes more than one of them."""
    with tempfile.TemporaryDirectory() as home:
        node = KlammNode(Path(home))
        try:
            target = _prepared(node)
            for frame in frames:
                before = target.resident_mib()
                began = time.monotonic()
                _sent(target, frame)
                if not target.is_up():
                    return frame
                target.check_witness_is_served()
                waited = time.monotonic() - began - PATIENCE_SECONDS
                if waited > HARMFUL_SECONDS or target.resident_mib() - before > HARMFUL_MIB:
                    return frame
        except (OSError, AssertionError):
            return frame
        finally:
            node.discard()
    return None


def replay(frame: Mutated, home: Path) -> str:
    """Sends one frame to a broker of its own; what came of it."""
    node = KlammNode(home)
    try:
        target = _prepared(node)
        outcome = _sent(target, frame)
        if not target.is_up():
            return f"the broker died:\n{node.log}"
        bug = "bug in Klamm" in node.log
        return f"the broker found a bug in itself:\n{node.log}" if bug else f"the broker is well and {outcome}"
    finally:
        node.discard()


def as_hex(frame: Mutated) -> str:
    return framed(frame.body, frame.size).hex()


def _prepared(node: KlammNode) -> Target:
    """With the topics that the frames speak of."""
    node.start()
    target = Target(node)
    for topic in TOPICS:
        target.create_topic(topic, partitions=2)
    return target


def _sent(target: Target, frame: Mutated) -> str:
    with target.connect(patience=PATIENCE_SECONDS) as client:
        client.send_bytes(framed(frame.body, frame.size))
        try:
            answer = client.frame()
        except TimeoutError:
            return f"said nothing for {PATIENCE_SECONDS:.0f} seconds"
        return "closed the connection" if answer is None else f"answered with {len(answer)} bytes"
