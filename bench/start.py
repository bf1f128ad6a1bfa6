"""From the start of the process to the first acknowledged record.

A client that tries to connect every millisecond, creates a topic with one partition, and produces one record with
acks=1 until it is acknowledged. Refusals on the way (nobody listens, not ready, no leader yet) are part of the time.
"""

import time
from dataclasses import dataclass

from bench import raw
from bench.batch import record_batch
from bench.systems import Node

RETRY_SECONDS = 0.001
GIVE_UP_SECONDS = 600.0


class StartError(Exception):
    """The process ended, or never answered. The message holds the end of its output."""


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds since the process was spawned."""

    connected: float
    first_answer: float
    first_ack: float


def started(node: Node, topic: str, *, create: bool = True) -> Start:
    """Spawn the node's process and wait until it has acknowledged a record in partition 0 of `topic`."""
    batch = record_batch(100, 1, int(time.time() * 1000))
    begin = time.perf_counter()
    deadline = begin + GIVE_UP_SECONDS
    node.start()
    connected = first_answer = 0.0
    created = not create
    while time.perf_counter() < deadline:
        try:
            connection = raw.Connection(node.port, timeout_seconds=GIVE_UP_SECONDS)
        except OSError:
            _check_alive(node)
            time.sleep(RETRY_SECONDS)
            continue
        connected = connected or time.perf_counter() - begin
        try:
            while time.perf_counter() < deadline:
                try:
                    if not first_answer:
                        connection.ask(raw.frame(raw.API_VERSIONS, b""))
                        first_answer = time.perf_counter() - begin
                    if not created:
                        raw.create_topics(connection, [(topic, 1)])
                        created = True
                    raw.checked_produce(connection.ask(raw.produce_frame(topic, [0], batch)))
                    return Start(connected, first_answer, time.perf_counter() - begin)
                except raw.RefusedError as refusal:
                    created = created or refusal.code == raw.TOPIC_ALREADY_EXISTS
                    time.sleep(RETRY_SECONDS)
        except OSError:
            _check_alive(node)
            time.sleep(RETRY_SECONDS)
        finally:
            connection.close()
    raise StartError(f"no acknowledged record within {GIVE_UP_SECONDS:.0f} s; its output ends: {node.last_output()}")


def _check_alive(node: Node) -> None:
    if not node.is_running():
        raise StartError(f"{node.command[0]} ended; its output ends: {node.last_output()}")
