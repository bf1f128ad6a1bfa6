"""What a node announces about itself and the requests it gets."""

from klamm.errors import ErrorCode
from klamm.facts import Fact


class RequestNotUnderstood(Fact):
    level = "warning"
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"closed the connection from {self.peer}: {self.reason}"


class AnswerNotUnderstood(Fact):
    level = "warning"
    node_id: int
    reason: str

    def __str__(self) -> str:
        return f"closed the connection to node {self.node_id}: {self.reason}"


class Registered(Fact):
    broker_epoch: int

    def __str__(self) -> str:
        return f"registered with the controller, broker epoch {self.broker_epoch}"


class RegistrationRefused(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        hint = ""
        if self.reason == ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name:
            hint = "; it has to reach this broker at the address that it advertises (advertised.listeners)"
        return f"the controller refuses this broker: {self.reason}{hint}"


class EarlierLifeStands(Fact):
    """After a while it is fenced, because it says nothing. Unless it does: then two processes use one id."""

    level = "warning"
    broker_id: int

    def __str__(self) -> str:
        return (
            f"the controller still counts on another process as broker {self.broker_id}: waiting until that is found "
            "dead; if it runs elsewhere, give one of the two another id"
        )


class Serving(Fact):
    broker_id: int

    def __str__(self) -> str:
        return f"broker {self.broker_id} is counted on by the controller"


class Replaced(Fact):
    level = "error"
    broker_id: int

    def __str__(self) -> str:
        return f"another process has registered as broker {self.broker_id}; this one ends"


class ControllerChanged(Fact):
    node_id: int
    epoch: int

    def __str__(self) -> str:
        return f"the controller is node {self.node_id}, epoch {self.epoch}"


class NodeGone(Fact):
    level = "warning"
    node_id: int

    def __str__(self) -> str:
        return f"node {self.node_id} is gone: its connection broke, and nobody listens there any more"


class HandlerFailed(Fact):
    """A mistake of ours: a request that should have been answered was not. The traceback belongs in a bug report."""

    level = "error"
    peer: str
    request: str
    traceback: str

    def __str__(self) -> str:
        return f"could not handle {self.request} from {self.peer}; this is a bug in Klamm\n{self.traceback}"


class MetadataFailed(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"the metadata log is offline ({self.reason}): nothing can be created or altered until a restart"


class NotDecided(Fact):
    """Something that nobody asked for, as fencing a broker that is silent. It is tried again."""

    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"the metadata log takes no records for now, what had to be decided waits: {self.reason}"


class ChoreFailed(Fact):
    """Housekeeping met a disk that refused. It is tried again next time."""

    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"housekeeping failed, and is tried again later: {self.reason}"


class FlushFailed(Fact):
    level = "error"
    logs: int
    reason: str

    def __str__(self) -> str:
        logs = "a log" if self.logs == 1 else f"{self.logs} logs"
        return f"could not bring {logs} to disk ({self.reason}); offline until a restart recovers what is there"
