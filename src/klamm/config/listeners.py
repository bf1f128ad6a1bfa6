"""Listeners: where a node listens and what it tells others to dial, read from Kafka's `NAME://host:port`.

A listener has a name, and the name stands for a security protocol. Only PLAINTEXT is there yet, so a listener that asks
for another protocol is a problem, not a listener. Problems are collected, because a person wants to see them all.
"""

from typing import NamedTuple

from klamm.config.rules import address

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """`host` is empty for every interface; a `port` of 0 lets the system choose."""

    name: str
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def listeners_of(name: str, texts: tuple[str, ...], problems: list[str]) -> tuple[Listener, ...]:
    """The listeners written under the setting `name`."""
    found: list[Listener] = []
    for text in texts:
        listener = _listener(text)
        if listener is None:
            problems.append(f"{name}: {text!r} is not a listener; write NAME://host:port")
        elif any(other.name == listener.name for other in found):
            problems.append(f"{name}: the listener {listener.name} is there twice; each needs a name of its own")
        else:
            found.append(listener)
    return tuple(found)


def protocols_of(text: str, controller_names: tuple[str, ...], problems: list[str]) -> dict[str, str]:
    """Which protocol each listener name speaks. The quorum's own are PLAINTEXT unless the map says otherwise."""
    protocols = {name.upper(): "PLAINTEXT" for name in controller_names}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = entry.partition(":")
        if protocol not in PROTOCOLS:
            allowed = ", ".join(PROTOCOLS)
            problems.append(f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with one of {allowed}")
        else:
            protocols[name.upper()] = protocol
    return protocols


def check_protocols(name: str, listeners: tuple[Listener, ...], protocols: dict[str, str], problems: list[str]) -> None:
    """Every listener speaks a protocol that is there."""
    for listener in listeners:
        protocol = protocols.get(listener.name)
        if protocol is None:
            problems.append(
                f"{name}: {listener.name} has no security protocol;"
                f" add {listener.name}:PLAINTEXT to listener.security.protocol.map"
            )
        elif protocol != "PLAINTEXT":
            problems.append(
                f"{name}: {listener.name} wants {protocol}, which is not implemented yet;"
                " use PLAINTEXT inside a network you trust"
            )


def check_ports(listeners: tuple[Listener, ...], problems: list[str]) -> None:
    """Two listeners do not share a place, nor a port when one of them takes every interface."""
    for index, listener in enumerate(listeners):
        for other in listeners[:index]:
            if listener.port == other.port != 0 and (listener.host == other.host or "" in (listener.host, other.host)):
                problems.append(f"listeners: {other} and {listener} cannot share port {listener.port}")


def check_dialable(listeners: tuple[Listener, ...], problems: list[str]) -> None:
    """Nobody can dial the address that stands for all addresses."""
    for listener in listeners:
        if listener.host in ("0.0.0.0", "::"):
            problems.append(
                f"advertised.listeners: clients cannot dial {listener.host};"
                f" advertise {listener.name} under an address they can reach"
            )


def _listener(text: str) -> Listener | None:
    name, mark, place = text.partition("://")
    found = address(place)
    return Listener(name.upper(), *found) if name and mark and found else None
