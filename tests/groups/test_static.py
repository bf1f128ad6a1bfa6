"""Ten static members are restarted one after another, and nobody else hears of it: the generation stays."""

from klamm.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.heartbeat import HeartbeatRequest
from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.groups.member import Member
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until


def test_ten_static_classic_members_are_restarted_without_a_rebalance(node: Node, ten: str) -> None:
    """By three libraries; some of them leave, some are killed. A library that would leave for good is only killed."""
    clients = ["confluent-kafka"] * 5 + ["aiokafka"] * 3 + ["kafka-python"] * 2
    _restarted_one_by_one(node, ten, clients, "classic", _generation)


def test_ten_static_members_of_the_newer_protocol_are_restarted_without_a_rebalance(node: Node, ten: str) -> None:
    """All of them leave for a while: the place of one who is killed is not free before its session ends."""
    _restarted_one_by_one(node, ten, ["confluent-kafka"] * 10, "consumer", _epoch)


def _restarted_one_by_one(node: Node, ten: str, clients: list[str], protocol: str, generation) -> None:  # type: ignore[no-untyped-def]
    options = {"protocol": protocol, "session_ms": 20_000}
    with (
        Gathering(node.bootstrap, ten, f"static-{ten}") as group,
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
        Raw(node.port) as raw,
    ):
        for number, client in enumerate(clients):
            group.start(client, 1, instance=f"instance-{number}", **options)
        group.wait_joined(10)
        group.wait_spread(*[1] * 10)
        before = generation(raw, group.group)
        for number, (client, member) in enumerate(zip(clients, list(group.running), strict=True)):
            others = {one: len(_moves(one)) for one in group.running if one is not member}
            had = member.owned
            if protocol == "classic" and (number % 2 or client == "kafka-python"):
                member.kill9()
            else:
                member.leave()
            (again,) = group.start(client, 1, instance=f"instance-{number}", **options)
            wait_until(lambda again=again, had=had: again.owned == had, f"{again} has what it had")  # type: ignore[misc]
            assert {one: len(_moves(one)) for one in others} == others, "nobody else has heard of it"
        assert generation(raw, group.group) == before
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)


def _moves(member: Member) -> list[object]:
    return [told for told in member.told if told.what in ("assigned", "revoked", "lost")]


def _generation(raw: Raw, group: str) -> int:
    """The one generation for which a member's heartbeat is not refused; no API tells it."""
    (found,) = raw.call("DescribeGroups", 5, DescribeGroupsRequest([group])).groups
    one = found.members[0]
    for generation in range(1, 100):
        request = HeartbeatRequest(group, generation, one.member_id, one.group_instance_id)
        code = raw.call("Heartbeat", 4, request).error_code
        if code == ErrorCode.NONE:
            return generation
        assert code == ErrorCode.ILLEGAL_GENERATION, code
    raise AssertionError("no generation below a hundred")


def _epoch(raw: Raw, group: str) -> int:
    (found,) = raw.call("ConsumerGroupDescribe", 1, ConsumerGroupDescribeRequest([group])).groups
    epoch: int = found.group_epoch
    return epoch
