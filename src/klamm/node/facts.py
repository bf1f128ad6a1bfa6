"""What a node announces about itself and the requests it gets."""

from dataclasses import dataclass

from klamm.facts import Fact


@dataclass(frozen=True, slots=True)
class RequestNotUnderstood(Fact):
    level = "warning"
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"closed the connection from {self.peer}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HandlerFailed(Fact):
    """A mistake of ours: a request that should have been answered was not. The traceback belongs in a bug report."""

    level = "error"
    peer: str
    request: str
    traceback: str

    def __str__(self) -> str:
        return f"could not handle {self.request} from {self.peer}; this is a bug in Klamm\n{self.traceback}"


@dataclass(frozen=True, slots=True)
class MetadataFailed(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"the metadata log is offline ({self.reason}): nothing can be created or altered until a restart"


@dataclass(frozen=True, slots=True)
class ChoreFailed(Fact):
    """Housekeeping met a disk that refused. It is tried again next time."""

    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"housekeeping failed, and is tried again later: {self.reason}"


@dataclass(frozen=True, slots=True)
class FlushFailed(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"could not bring data to disk ({self.reason}); these logs are offline until a restart recovers them"
