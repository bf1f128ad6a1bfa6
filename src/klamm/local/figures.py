"""Some figures of a broker that no request of Kafka's tells: what consumers were given, and how many a group has.

Read from the page that Prometheus scrapes, and of it only what is needed: the whole page grows with the partitions.
"""

import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from klamm.local.asking import NoAnswer

BYTES_OUT, MEMBERS = "kafka_server_brokertopicmetrics_bytesout_total", "kafka_consumergroup_members"
SAMPLE = re.compile(r'(\w+)\{\w+="((?:[^"\\]|\\.)*)"\} (\d+)')
UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Figures:
    bytes_out: Mapping[str, int] = field(default_factory=dict)
    """By topic: what consumers were given since the broker started."""
    members: Mapping[str, int] = field(default_factory=dict)
    """By group, of those that the broker coordinates."""


def figures_at(place: str, timeout_seconds: float) -> Figures:
    """Of the broker that serves metrics at host:port. NoAnswer if nobody does, or takes longer."""
    page = _page(place, f"/metrics?name[]={BYTES_OUT}&name[]={MEMBERS}", timeout_seconds)
    found: dict[str, dict[str, int]] = {BYTES_OUT: {}, MEMBERS: {}}
    for family, of_what, value in _samples(page):
        # A broker of an older version answers with the whole page.
        found.get(family, {})[of_what] = value
    return Figures(found[BYTES_OUT], found[MEMBERS])


def _samples(page: str) -> Iterator[tuple[str, str, int]]:
    """Of families with one label: the family, the label's value, and the sample's."""
    for line in page.splitlines():
        if matched := SAMPLE.fullmatch(line):
            yield matched[1], re.sub(r"\\.", lambda each: UNESCAPED.get(each[0], each[0]), matched[2]), int(matched[3])


def _page(place: str, path: str, timeout_seconds: float) -> str:
    """HTTP/1.0 is enough: one question, and the answer ends with the connection."""
    deadline = time.monotonic() + timeout_seconds
    host, _, port = place.rpartition(":")
    received = bytearray()
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_seconds) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode("ascii"))
            while more := connection.recv(READ_BYTES):
                received += more
                connection.settimeout(max(1e-3, deadline - time.monotonic()))
    except OSError as error:
        raise NoAnswer(f"{place}: {error.strerror or error}") from error
    head, _, body = received.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise NoAnswer(f"{place} serves no metrics")
    return body.decode(errors="replace")
