"""A broker whose every text is an attack on the terminal: names, hosts, racks, messages, whatever it is asked.

It answers any API: numbers are 0, lists have an element, and texts are `EVIL` or `LONG`. What a command has to believe
to come as far as showing something (who leads, which group was asked for) is written down for that API.
"""

import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from klamm.cli.group_asking import FIND_COORDINATOR, LIST_OFFSETS
from klamm.cli.group_seen import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, OFFSET_FETCH
from klamm.cli.group_views import LIST_GROUPS
from klamm.errors import ErrorCode
from klamm.local.asking import DESCRIBE_CLUSTER, METADATA
from klamm.wire.apis import API_BY_KEY, response_type
from tests.cli.fake_broker import FakeBroker

FORGED = "FORGED"
EVIL = f"\x1b[31mred\x1b]0;title\x07[bold]no markup[/bold] :smile:\r\n{FORGED} row\t\x9b2J\u202egnp.exe\x7f\u2028\0"
LONG = "x" * 32_000


def filled(kind: type[Any], text: str = EVIL) -> Any:
    """An answer of this type, or a part of one."""
    made = kind()
    for name, hint in typing.get_type_hints(kind).items():
        if (value := _value(hint, text)) is not None:
            setattr(made, name, value)
    return made


def _value(hint: Any, text: str) -> Any:
    """None where the default will do."""
    origin, within = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _value(next(each for each in within if each is not type(None)), text)
    if origin is list:
        element = _value(within[0], text)
        return [within[0]() if element is None else element]
    if hint is str:
        return text
    return filled(hint, text) if _is_struct(hint) else None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and kind.__module__.startswith("klamm.wire.messages")


class HostileBroker(FakeBroker):
    def __init__(self, refusal: int = 0) -> None:
        super().__init__()
        self._refusal = refusal
        self.answers = _Answers(self)

    def answer(self, key: int, request: Any) -> Any:
        known: Mapping[int, Callable[[Any, Any], Any]] = {
            METADATA: self._metadata,
            DESCRIBE_CLUSTER: self._cluster,
            FIND_COORDINATOR: self._coordinators,
            LIST_GROUPS: self._groups,
            CONSUMER_GROUP_DESCRIBE: self._consumer_groups,
            DESCRIBE_GROUPS: self._classic_groups,
            OFFSET_FETCH: self._offsets,
            LIST_OFFSETS: self._ends,
        }
        answer = filled(response_type(key))
        if key in known:
            return known[key](request, answer)
        _refuse(answer, self._refusal)
        return answer

    def _metadata(self, request: Any, answer: Any) -> Any:
        (broker,), (topic,) = answer.brokers, answer.topics
        broker.node_id, broker.host, broker.port = 7, *self.address
        other = filled(type(broker))
        other.node_id, other.port = 8, 9
        answer.brokers.append(other)
        names = [EVIL, LONG[:249]] if request.topics is None else [each.name for each in request.topics]
        answer.topics = [filled(type(topic)) for _ in names]
        for each, name in zip(answer.topics, names, strict=True):
            each.name = name
            (partition,) = each.partitions
            partition.leader_id, partition.replica_nodes, partition.isr_nodes = 7, [7, 8], [7, 8]
        return answer

    def _cluster(self, request: Any, answer: Any) -> Any:
        (broker,) = answer.brokers
        broker.broker_id, broker.host, broker.port = 7, *self.address
        other = filled(type(broker), LONG)
        other.broker_id, other.is_fenced = 8, True
        answer.brokers.append(other)
        return answer

    def _coordinators(self, request: Any, answer: Any) -> Any:
        kind = type(answer.coordinators[0])
        answer.coordinators = [
            kind(key=key, node_id=7, host=self.address.host, port=self.address.port) for key in request.coordinator_keys
        ]
        return answer

    def _groups(self, request: Any, answer: Any) -> Any:
        kind = type(answer.groups[0])
        answer.groups = [
            kind(EVIL, EVIL, "Stable", "consumer"),
            kind(LONG, LONG, EVIL, "classic"),
            kind("c", LONG, LONG, EVIL),
        ]
        return answer

    def _consumer_groups(self, request: Any, answer: Any) -> Any:
        (group,) = answer.groups
        answer.groups = [filled(type(group), EVIL if name == EVIL else LONG) for name in request.group_ids]
        for each, name in zip(answer.groups, request.group_ids, strict=True):
            each.group_id = name
            each.error_code = 0 if name == EVIL else ErrorCode.GROUP_ID_NOT_FOUND
        return answer

    def _classic_groups(self, request: Any, answer: Any) -> Any:
        (group,) = answer.groups
        answer.groups = [filled(type(group), LONG) for _ in request.groups]
        for each, name in zip(answer.groups, request.groups, strict=True):
            each.group_id = name
        return answer

    def _offsets(self, request: Any, answer: Any) -> Any:
        (group,) = answer.groups
        answer.groups = [filled(type(group), EVIL) for _ in request.groups]
        for each, asked in zip(answer.groups, request.groups, strict=True):
            each.group_id = asked.group_id
        return answer

    def _ends(self, request: Any, answer: Any) -> Any:
        (topic,) = answer.topics
        (partition,) = topic.partitions
        answer.topics = [type(topic)(each.name, []) for each in request.topics]
        for told, asked in zip(answer.topics, request.topics, strict=True):
            told.partitions = [type(partition)(each.partition_index, offset=9) for each in asked.partitions]
        return answer


class _Answers(dict[int, Callable[[Any], Any]]):
    def __init__(self, broker: HostileBroker) -> None:
        super().__init__({key: lambda request, key=key: broker.answer(key, request) for key in API_BY_KEY})


def _refuse(answer: Any, code: int) -> None:
    """Wherever there is a place for it."""
    for name in typing.get_type_hints(type(answer)):
        value = getattr(answer, name)
        if name == "error_code":
            answer.error_code = code
        for part in value if isinstance(value, list) else [value]:
            if _is_struct(type(part)):
                _refuse(part, code)
