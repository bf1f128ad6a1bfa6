"""Members of groups, against a coordinator that keeps to the protocol, and against one that does not."""

import pytest

from klamm.errors import ErrorCode
from klamm.ids import Offset
from klamm.sim.checkers.group_owners import GroupOwners
from klamm.sim.checkers.group_progress import GroupProgress
from klamm.sim.clients.client import Desk
from klamm.sim.clients.group_history import GroupHistory
from klamm.sim.clients.history import Fate, History
from klamm.sim.clients.member import Member, MemberSettings, Versions
from klamm.sim.clients.member_classic import ClassicMember, assigned, assignment, ranged
from klamm.sim.clients.member_consumer import ConsumerMember
from klamm.sim.groups import OF_CLASSIC, OF_CONSUMER, REBALANCE_MS, SESSION_MS
from klamm.sim.network import Network
from klamm.sim.promise import Broken
from klamm.sim.world import World
from tests.sim.stub_coordinator import GROUP, PORT, TOPIC, TOPIC_ID, StubBroker

AGES = [*((ClassicMember, age) for age in OF_CLASSIC), *((ConsumerMember, age) for age in OF_CONSUMER)]
WITH_INSTANCES = AGES[1:]
NEWEST = [AGES[2], AGES[4]]


class Scene:
    def __init__(self, kind: type[Member], versions: Versions, seed: int = 1) -> None:
        self.kind, self.versions = kind, versions
        self.world = World(seed)
        self.network = Network(self.world)
        self.broker = StubBroker(self.world, self.network)
        self.history = GroupHistory()
        self.owners = GroupOwners(self.history, lambda group: False)
        self.progress = GroupProgress(self.history, set())
        self.history.on_told = self.owners.told
        self.ports = 20_000

    def member(self, number: int, *, life: int = 1, instance_id: str | None = None) -> Member:
        self.ports += 1
        settings = MemberSettings(GROUP, TOPIC, self.versions, SESSION_MS, REBALANCE_MS, 400, instance_id, life)
        desk = Desk(self.world, self.network, f"seat-{number}", self.ports, {0: PORT})
        member = self.kind(desk, settings, History(), self.history)
        member.begin()
        return member

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ms + 1_000.0 * seconds)

    def write(self, count: int) -> None:
        self.broker.records = [end + count for end in self.broker.records]

    def handled(self) -> list[Offset]:
        return [self.progress.up_to(GROUP, (TOPIC_ID, index)) for index in range(len(self.broker.records))]


def owned(*members: Member) -> list[int]:
    return sorted(index for member in members for index in member.owned)


@pytest.mark.parametrize(("kind", "versions"), AGES)
def test_members_share_what_there_is_and_handle_all_of_it(kind: type[Member], versions: Versions) -> None:
    scene = Scene(kind, versions)
    scene.write(5)
    one, other = scene.member(0), scene.member(1)
    scene.run(5)
    assert owned(one, other) == [0, 1, 2] and one.owned and other.owned
    assert scene.handled() == [5, 5, 5]
    scene.write(4)
    scene.run(3)
    assert scene.handled() == [9, 9, 9]
    assert one.is_settled and other.is_settled


@pytest.mark.parametrize(("kind", "versions"), AGES)
def test_who_is_killed_is_followed_by_others_from_where_it_had_committed(
    kind: type[Member], versions: Versions
) -> None:
    scene = Scene(kind, versions)
    one, other = scene.member(0), scene.member(1)
    scene.write(5)
    scene.run(5)
    one.end()
    scene.write(1)
    scene.run(6)
    assert owned(other) == [0, 1, 2] and scene.handled() == [6, 6, 6]
    assert all(scene.broker.offsets[index][0] > 0 for index in range(3))
    again = scene.member(0, life=2)
    scene.run(5)
    assert owned(other, again) == [0, 1, 2] and again.owned


@pytest.mark.parametrize(("kind", "versions"), AGES)
def test_who_leaves_is_followed_at_once(kind: type[Member], versions: Versions) -> None:
    scene = Scene(kind, versions)
    one, other = scene.member(0), scene.member(1)
    scene.run(4)
    one.leave()
    scene.run(1.5)
    assert one.has_ended and owned(other) == [0, 1, 2]


@pytest.mark.parametrize(("kind", "versions"), AGES)
def test_a_zombie_commits_when_it_wakes_and_is_refused(kind: type[Member], versions: Versions) -> None:
    scene = Scene(kind, versions)
    one, other = scene.member(0), scene.member(1)
    scene.run(4)
    scene.write(3)
    scene.run(0.1)
    one.pause()
    scene.run(6)
    assert owned(other) == [0, 1, 2] and one.owned, "it does not know yet"
    one.resume()
    scene.run(5)
    assert scene.history.reached["member fenced"] > 0
    assert owned(one, other) == [0, 1, 2] and one.owned
    assert all(commit.fate is not Fate.UNKNOWN for commit in scene.history.commits.values())


@pytest.mark.parametrize(("kind", "versions"), WITH_INSTANCES)
def test_a_static_member_comes_back(kind: type[Member], versions: Versions) -> None:
    scene = Scene(kind, versions)
    one = scene.member(0, instance_id="first")
    other = scene.member(1, instance_id="second")
    scene.run(4)
    one.leave()
    scene.run(0.2)
    again = scene.member(0, life=2, instance_id="first")
    scene.run(5)
    assert owned(again, other) == [0, 1, 2] and again.owned
    assert scene.history.reached["static member returned"]


def test_of_two_with_one_instance_id_the_classic_protocol_ends_the_older() -> None:
    scene = Scene(*AGES[2])
    one = scene.member(0, instance_id="the same")
    scene.run(2)
    other = scene.member(0, life=2, instance_id="the same")
    scene.run(4)
    assert one.has_ended and owned(other) == [0, 1, 2]


def test_of_two_with_one_instance_id_the_newer_protocol_keeps_the_older() -> None:
    scene = Scene(*AGES[4])
    one = scene.member(0, instance_id="the same")
    scene.run(2)
    other = scene.member(0, life=2, instance_id="the same")
    scene.run(4)
    assert owned(one) == [0, 1, 2] and not other.owned
    one.end()
    scene.run(5)
    assert owned(other) == [0, 1, 2]


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
@pytest.mark.parametrize(("kind", "versions"), AGES)
def test_a_coordinator_that_is_none_is_asked_again(kind: type[Member], versions: Versions, code: ErrorCode) -> None:
    scene = Scene(kind, versions)
    scene.broker.answers_with = code
    one, other = scene.member(0), scene.member(1)
    scene.write(2)
    scene.run(2)
    assert not owned(one, other)
    scene.broker.answers_with = ErrorCode.NONE
    scene.run(5)
    assert owned(one, other) == [0, 1, 2]
    scene.broker.answers_with = code
    scene.write(2)
    scene.run(1)
    scene.broker.answers_with = ErrorCode.NONE
    scene.run(5)
    assert owned(one, other) == [0, 1, 2] and scene.handled() == [4, 4, 4]


@pytest.mark.parametrize(("kind", "versions"), AGES)
def test_connections_break_and_links_are_cut(kind: type[Member], versions: Versions) -> None:
    scene = Scene(kind, versions)
    one, other = scene.member(0), scene.member(1)
    scene.run(3)
    for _ in range(4):
        for end in scene.network.connections():
            scene.network.reset(end)
        heal = scene.network.cut(scene.broker, one)
        scene.write(2)
        scene.run(1.5)
        heal()
        scene.run(0.7)
    scene.run(7)
    assert owned(one, other) == [0, 1, 2] and scene.handled() == [8, 8, 8]


def test_a_classic_leader_sees_that_the_topic_has_grown() -> None:
    scene = Scene(*NEWEST[0])
    one, other = scene.member(0), scene.member(1)
    scene.run(3)
    scene.broker.records.append(0)
    scene.run(6)
    assert owned(one, other) == [0, 1, 2, 3]


def test_a_partition_that_is_handed_over_too_early_is_noticed() -> None:
    scene = Scene(*NEWEST[1])
    scene.broker.forgets_to_wait = True
    scene.member(0)
    scene.run(3)
    scene.member(1)
    with pytest.raises(Broken, match="I27"):
        scene.run(5)


def test_ranges() -> None:
    assert ranged(5, ["a", "b"]) == {"a": [0, 1, 2], "b": [3, 4]}
    assert ranged(1, ["a", "b"]) == {"a": [0], "b": []}
    assert assigned(assignment("steady", [2, 0]), "steady") == [0, 2]
    assert assigned(assignment("other", [2, 0]), "steady") == []
    assert assigned(b"", "steady") == []
