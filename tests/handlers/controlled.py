"""A broker as the handlers of the controller's APIs see it: the controller of a small cluster, or none here."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from klamm.broker.answer import Answer, Later, Reply
from klamm.broker.broker import CarryingOut
from klamm.broker.call import Call
from klamm.broker.lane import Lane
from klamm.broker.speaker import Speaker
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers import TABLE, handler
from klamm.ids import Now
from klamm.machine import Plan
from klamm.metadata.records import MetadataRecord
from tests.controller.world import World


class Controlled:
    """Requests to the node where the controller is. What it proposes is committed, unless told otherwise."""

    def __init__(self, brokers: int = 3, **settings: str) -> None:
        self.world = World(brokers, **settings)
        self.is_here = True
        self.is_believed = True
        """Whether a broker's request comes over a connection of this broker's."""
        self.refuses: KafkaError | None = None

    def answer(self, api: str, request: object, version: int) -> Answer:
        broker = SimpleNamespace(
            controller=self.world.controller if self.is_here else None,
            quorum=SimpleNamespace(log=SimpleNamespace(end_offset=self.world.next_offset)),
            carry_out=self._carry_out,
            users=Lane(),
            config=self.world.config,
        )
        speaker = None
        if self.is_believed:
            speaker = Speaker(getattr(request, "broker_id", -1), b"", is_this_node=True)
        call = Call(cast(Any, broker), version, "a-client", 1, "a-peer", self.world.now, speaker)
        (key,) = (key for key, name in TABLE.items() if name == api)
        return handler(key)(request, call)

    def ask(self, api: str, request: object, version: int, *, in_time: bool = True) -> Any:
        """The response in the end."""
        answer = self.answer(api, request, version)
        while isinstance(answer, Later):
            response = answer.then(self.world.now, in_time)
            answer = response if isinstance(response, Later) else Reply(response)
        assert isinstance(answer, Reply)
        return answer.response

    def _carry_out(self, plan: Plan[MetadataRecord, Any]) -> Callable[[Now], CarryingOut[Any]]:
        def carry_out(now: Now) -> CarryingOut[Any]:
            if plan.records and self.refuses is not None:
                return plan.response, None, self.refuses
            is_change = bool(plan.records)
            response = self.world.run(plan)
            return response, self.world.next_offset - 1 if is_change else None, None
            yield

        return carry_out


NOT_CONTROLLER = KafkaError(ErrorCode.NOT_CONTROLLER, "Somebody else is.")
