"""What the runtime announces about sockets and the process."""

from klamm.facts import Fact


class ConnectionRefused(Fact):
    """A connection over the limit (`max.connections`, `max.connections.per.ip`) was closed at once."""

    level = "warning"
    ip: str
    connections: int

    def __str__(self) -> str:
        return f"refused a connection from {self.ip}: over the limit, with {self.connections} connections open"


class AcceptFailed(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"cannot take connections at the moment: {self.reason}"


class StrangeBytes(Fact):
    """Somebody sent what is not Kafka's protocol: a browser, a scanner, a broken client."""

    level = "warning"
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"closed the connection from {self.peer}: {self.reason}"


class ReplyLost(Fact):
    level = "error"
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"closed the connection from {self.peer}, because what it asked for cannot be read: {self.reason}"


class FileStays(Fact):
    """What was deleted still takes room on the disk."""

    level = "warning"
    path: str
    reason: str

    def __str__(self) -> str:
        return f"cannot remove {self.path}, which was deleted: {self.reason}; it is tried again every minute"


class SettingWarning(Fact):
    level = "warning"
    text: str

    def __str__(self) -> str:
        return self.text


class ListensWide(Fact):
    level = "warning"
    host: str
    port: int

    def __str__(self) -> str:
        return (
            f"LISTENS BEYOND THIS MACHINE ({self.host}:{self.port}) WITHOUT AUTHENTICATION: "
            "whoever reaches this port can read, write and delete everything"
        )


class MetricsServed(Fact):
    url: str

    def __str__(self) -> str:
        return f"serves metrics at {self.url}"


class MetricsNotServed(Fact):
    """The port may be somebody else's. A broker is there to serve records, so it goes on."""

    level = "warning"
    place: str
    reason: str

    def __str__(self) -> str:
        return (
            f"cannot serve metrics at {self.place}: {self.reason}; goes on without them "
            "(klamm.metrics.listener names another address)"
        )


class PageFailed(Fact):
    """A mistake of ours. Whoever asked sees an answer that breaks off."""

    level = "error"
    path: str
    traceback: str

    def __str__(self) -> str:
        return f"could not answer {self.path} of the metrics listener; this is a bug in Klamm\n{self.traceback}"


class Stopped(Fact):
    clean: bool

    def __str__(self) -> str:
        return "stopped cleanly" if self.clean else "stopped; the next start recovers the logs"
