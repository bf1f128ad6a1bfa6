"""S14 and S15 on bad links: the follower leaves the in-sync replicas, writes go on, and on a good link it comes back.

The leader and the follower are those that do not decide for the cluster; so the link between them carries the
partition's records and nothing else.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

import pytest

from tests.compat.links.linked import BROKERS, LAG_SECONDS, Linked
from tests.compat.links.network import Network, NoNetwork
from tests.system.clients import Writer, all_of

CONGESTED_KILOBITS = 800
"""A tenth of a megabyte a second."""


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linked]:
    with ExitStack() as stack:
        try:
            network = stack.enter_context(Network(len(BROKERS)))
        except NoNetwork as problem:
            pytest.skip(str(problem))
        yield stack.enter_context(Linked(network, tmp_path_factory.mktemp("linked")))


class Roles(NamedTuple):
    leader: int
    follower: int
    controller: int


@pytest.fixture
def roles(linked: Linked, topic: str) -> Roles:
    """A new topic of one partition, led by one that does not decide, followed by the other, and by who decides."""
    controller = linked.controller()
    leader, follower = (broker for broker in BROKERS if broker != controller)
    linked.eyes(controller).create(topic, replicas=[leader, follower, controller])
    Writer(linked.bootstrap, "all").write_safely(topic, "before")
    linked.wait_in_sync(topic, BROKERS, asked=leader)
    return Roles(leader, follower, controller)


def test_s15_a_congested_link(linked: Linked, topic: str, roles: Roles) -> None:
    """More comes than goes through: the follower is ever further behind, and the others do not wait for it."""
    writer = Writer(linked.bootstrap, "all", linger_ms=5)
    with linked.network.slow(roles.follower, CONGESTED_KILOBITS):
        offsets = writer.write_safely(topic, *("x" * 10_000 for _ in range(400)))
        assert offsets[-1] == 400
        linked.wait_in_sync(topic, {roles.leader, roles.controller}, asked=roles.leader)
        behind = len(_bytes(linked, roles.leader, topic)) - len(_bytes(linked, roles.follower, topic))
        assert behind > 1_000_000, "it lags because so much has not come through yet"
    _all_is_well(linked, topic, roles, 401)


def test_s14_a_slow_link_that_keeps_up(linked: Linked, topic: str, roles: Roles) -> None:
    """Less comes than goes through: slow is not out of sync."""
    writer = Writer(linked.bootstrap, "all")
    with linked.network.slow(roles.follower, CONGESTED_KILOBITS):
        for number in range(40):
            writer.write_safely(topic, f"{number:01000}")
            assert linked.eyes(roles.leader).places(topic)[0].in_sync == {*roles}
    _all_is_well(linked, topic, roles, 41)


def test_s15_a_lossy_link(linked: Linked, topic: str, roles: Roles) -> None:
    """A fifth of all packets are lost: whether the follower stays in sync or not, writes go on and nothing is lost."""
    writer = Writer(linked.bootstrap, "all")
    written = 0
    with linked.network.lossy(roles.follower, roles.leader, 20):
        deadline = time.monotonic() + 30
        while linked.network.dropped(roles.follower) < 10:
            assert time.monotonic() < deadline, "the link is used and loses packets"
            written += len(writer.write_safely(topic, *(f"{written + each:0500}" for each in range(10))))
    _all_is_well(linked, topic, roles, written + 1)


@pytest.mark.parametrize("kind", ["cut", "follower-deaf", "leader-deaf"])
def test_s15_a_cut_link_and_one_way_links(linked: Linked, topic: str, roles: Roles, kind: str) -> None:
    writer = Writer(linked.bootstrap, "all")
    with _broken(linked.network, roles, kind):
        began = time.monotonic()
        writer.write_safely(topic, "acknowledged when the follower has left")
        assert time.monotonic() - began > LAG_SECONDS / 2, "it was given its time"
        linked.wait_in_sync(topic, {roles.leader, roles.controller}, asked=roles.leader)
        writer.write_safely(topic, *(f"meanwhile {number}" for number in range(100)))
        assert roles.follower in linked.eyes(roles.leader).brokers(), "it is not fenced: the controller hears of it"
        assert b"meanwhile" not in _bytes(linked, roles.follower, topic)
    _all_is_well(linked, topic, roles, 102)


def test_s15_a_link_that_comes_and_goes(linked: Linked, topic: str, roles: Roles) -> None:
    writer = Writer(linked.bootstrap, "all")
    for number in range(5):
        with linked.network.cut(roles.leader, roles.follower):
            writer.write_safely(topic, f"in the dark {number}")
        writer.write_safely(topic, f"in the light {number}")
    _all_is_well(linked, topic, roles, 11)


def test_s22_a_leader_that_is_cut_off_is_replaced_and_gives_up_what_was_never_committed(
    linked: Linked, topic: str, roles: Roles
) -> None:
    """Clients still reach it, and it believes to lead. It acknowledges acks=1, for nothing; acks=all never."""
    hasty, careful = Writer(linked.bootstrap, "1"), Writer(linked.bootstrap, "all", request_timeout_ms=1000)
    hasty.write_safely(topic, "connected")
    zombie, others = roles.leader, {roles.follower, roles.controller}
    with linked.network.cut(zombie, roles.follower), linked.network.cut(zombie, roles.controller):
        hasty.write_safely(topic, "acknowledged by a zombie")
        (fate,) = careful.send(topic, "sent to a zombie")
        linked.wait_place(topic, lambda place: place.leader in others, roles.controller, "another leads")
        newcomer = Writer(",".join(map(linked.address, others)), "all")
        newcomer.write_safely(topic, "written to the new leader")
    assert careful.wait(30) == 0 and fate.is_acknowledged, "at the latest when all hear each other again"
    linked.wait_in_sync(topic, {*roles}, asked=roles.controller)
    linked.wait_place(topic, lambda place: place.leader == zombie, roles.controller, "it leads again")
    Writer(linked.bootstrap, "all").write_safely(topic, "after")
    values = all_of(linked.bootstrap, topic)
    assert values[:2] == ["before", "connected"] and values[-1] == "after"
    assert sorted(values[2:-1]) == ["sent to a zombie", "written to the new leader"]
    assert linked.segments(zombie, topic) == linked.segments(roles.follower, topic)


def _all_is_well(linked: Linked, topic: str, roles: Roles, records: int) -> None:
    """All are in sync, hold the same bytes, and no record is missing or doubled."""
    linked.wait_in_sync(topic, {*roles}, asked=roles.leader)
    assert Writer(linked.bootstrap, "all").write_safely(topic, "after") == [records]
    assert linked.segments(roles.follower, topic) == linked.segments(roles.leader, topic)
    values = all_of(linked.bootstrap, topic)
    assert len(values) == records + 1 and (values[0], values[-1]) == ("before", "after")


def _broken(network: Network, roles: Roles, kind: str) -> AbstractContextManager[None]:
    if kind == "cut":
        return network.cut(roles.leader, roles.follower)
    deaf, heard = (roles.follower, roles.leader) if kind == "follower-deaf" else (roles.leader, roles.follower)
    return network.deaf(deaf, heard)


def _bytes(linked: Linked, broker: int, topic: str) -> bytes:
    return b"".join(linked.segments(broker, topic).values())
