"""Who votes, and how that changes: one at a time, recorded in the log, and never by who has lost its memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import ZERO_UUID
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import LogPosition, VoteRequest
from klamm.quorum.voters import Voter, VoterHistory, Voters
from klamm.records.control import Voters as VotersRecord
from klamm.records.control import quorum_batch, quorum_record_of
from klamm.records.record import records_of
from tests.quorum.test_stories import elected, others, running
from tests.quorum.world import World


def home(number: int) -> bytes:
    return bytes([number]) * 16


def recorded(*numbers: int) -> Voters:
    voters = Voters.configured((number, f"host-{number}", 9090) for number in numbers)
    return voters.with_directories({number: home(number) for number in numbers})


# The value.


def test_voters_as_the_setting_has_them() -> None:
    voters = Voters.parsed("2@c:9092, 0@[::1]:9090,1@b:9091")
    assert list(voters.values()) == [
        Voter(0, host="::1", port=9090),
        Voter(1, host="b", port=9091),
        Voter(2, host="c", port=9092),
    ]
    assert not voters.is_recorded and voters.needed == 3, "everybody, as long as nobody is recorded"
    with pytest.raises(ValueError, match="id@host:port"):
        Voters.parsed("0@a:1,nonsense")


@settings(deadline=None)
@given(st.sets(st.integers(0, 50), min_size=1, max_size=7))
def test_voters_survive_their_record(numbers: set[int]) -> None:
    voters = recorded(*numbers)
    (record,) = records_of(quorum_batch([voters.record()], timestamp=1))
    found = quorum_record_of(record)
    assert isinstance(found, VotersRecord) and Voters.recorded(found) == voters
    assert voters.needed == len(numbers) // 2 + 1


def test_a_voter_is_its_number_and_its_disk() -> None:
    assert recorded(1, 2).has(ReplicaKey(1, home(1)))
    assert not recorded(1, 2).has(ReplicaKey(1, home(9)))
    assert Voters.configured([(1, "a", 1)]).has(ReplicaKey(1, home(9))), "no disk is known yet"


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=30))
def test_history_is_that_of_a_list_which_is_cut(steps: list[tuple[bool, int]]) -> None:
    history, twin = VoterHistory(recorded(0)), [(-1, recorded(0))]
    for is_cut, number in steps:
        if is_cut:
            history.truncate_to(number)
            twin = [entry for entry in twin if entry[0] < number]
        else:
            offset = twin[-1][0] + 1 + number % 3
            history.note(offset, recorded(number))
            twin.append((offset, recorded(number)))
        assert (history.latest_offset, history.latest) == twin[-1]
        for end in range(25):
            assert history.as_of(end) == [voters for at, voters in twin if at < end or at < 0][-1]


# Adding and removing.


def test_a_voter_is_added_and_counts() -> None:
    world, leader = running(voters=1, observers=1)
    world.nodes[1].is_controller = True
    world.kill(1)
    world.start(1)
    world.run(1_000)
    offset = world.add_voter(leader, 1)
    world.run(200)
    raft = world.nodes[leader].alive
    assert raft.high_watermark > offset and list(raft.voters) == [0, 1] and world.nodes[1].alive.is_voter
    world.kill(1)
    record = world.propose(leader)
    world.run(200)
    assert record not in world.nodes[0].applied, "one of two is no majority"
    world.start(1)
    world.run(2_000)
    assert record in world.nodes[0].applied or world.leader() is not None


def test_one_change_at_a_time() -> None:
    world, leader = running(voters=5)
    raft = world.nodes[leader].alive
    first, second = others(world, leader)[:2]
    raft.remove_voter(first, world.nodes[first].directory_id, world.now)
    with pytest.raises(KafkaError) as refused:
        raft.remove_voter(second, world.nodes[second].directory_id, world.now)
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
    world.settle(world.nodes[leader])
    world.run(200)
    raft.remove_voter(second, world.nodes[second].directory_id, world.now)


@pytest.mark.parametrize(
    ("node_id", "directory", "code"),
    [(1, None, ErrorCode.DUPLICATE_VOTER), (9, home(9), ErrorCode.REQUEST_TIMED_OUT)],
)
def test_who_may_not_be_added(node_id: int, directory: bytes | None, code: ErrorCode) -> None:
    world, leader = running()
    with pytest.raises(KafkaError) as refused:
        world.nodes[leader].alive.add_voter(Voter(node_id, directory or home(1), "host", 1), world.now)
    assert refused.value.code == code


def test_who_may_not_be_removed() -> None:
    world, leader = running(voters=1)
    raft = world.nodes[leader].alive
    for directory, code in [
        (home(7), ErrorCode.VOTER_NOT_FOUND),
        (world.nodes[0].directory_id, ErrorCode.INVALID_REQUEST),
    ]:
        with pytest.raises(KafkaError) as refused:
            raft.remove_voter(0, directory, world.now)
        assert refused.value.code == code


def test_a_change_that_finds_no_room_on_the_disk_has_not_happened() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    world.nodes[leader].disk.fail_once("append")
    raft = world.nodes[leader].alive
    with pytest.raises(KafkaError) as refused:
        raft.remove_voter(follower, world.nodes[follower].directory_id, world.now)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert raft.is_active_leader and list(raft.voters) == [0, 1, 2]
    record = world.propose(leader)
    world.run(200)
    assert record in world.nodes[leader].applied


def test_a_leader_that_is_removed_leads_until_that_is_committed() -> None:
    world, leader = running()
    node = world.nodes[leader]
    node.alive.remove_voter(leader, node.directory_id, world.now)
    assert node.alive.is_leader
    world.settle(node)
    world.run(1_000)
    successor = elected(world)
    assert successor != leader and list(world.nodes[successor].alive.voters) == others(world, leader)
    record = world.propose(successor)
    world.run(200)
    assert record in node.applied, "it follows as an observer"
    world.run(5_000)
    assert elected(world) == successor and not node.alive.is_voter, "and comes back neither as voter nor as candidate"


# Wiped disks.


def test_a_wiped_voter_observes_until_it_has_caught_up_and_votes_again() -> None:
    world, leader = running()
    kept = world.propose(leader)
    world.run(100)
    lost = others(world, leader)[0]
    old = world.nodes[lost].directory_id
    world.wipe(lost)
    world.start(lost)
    world.run(300)
    assert kept in world.nodes[lost].applied and not world.nodes[lost].alive.is_voter
    assert world.nodes[leader].alive.voters.has(ReplicaKey(lost, old))
    world.run(5_000)
    voters = world.nodes[leader].alive.voters
    assert voters.has(ReplicaKey(lost, world.nodes[lost].directory_id)) and world.nodes[lost].alive.is_voter
    assert world.nodes[leader].alive.epoch == 1, "nobody was disturbed"
    world.kill(leader)
    assert elected(world) != leader, "its vote counts again"


def test_a_wiped_leader_comes_back_as_a_voter() -> None:
    world, leader = running()
    kept = world.propose(leader)
    world.run(100)
    world.wipe(leader)
    world.start(leader)
    world.run(6_000)
    assert kept in world.nodes[leader].applied and world.nodes[leader].alive.is_voter
    assert all(kept in node.applied for node in world.nodes.values())


def test_a_wiped_voter_does_not_help_to_elect_who_never_had_what_it_acknowledged() -> None:
    """Committed on two of three; one of the two loses its disk, the other is cut off. What they knew must not be
    outvoted."""
    world, leader = running()
    behind, holder = others(world, leader)
    world.isolate(behind)
    record = world.propose(leader)
    world.run(200)
    assert record in world.nodes[leader].applied
    world.heal()
    world.isolate(leader)
    world.wipe(holder)
    world.start(holder)
    world.run(10_000)
    assert world.leader() in (None, world.nodes[leader]), "nobody leads who lacks a committed record"
    world.heal()
    world.run(10_000)
    assert all(record in node.applied for node in world.nodes.values())


def test_an_empty_node_votes_only_for_an_empty_one_or_for_who_knows_its_disk() -> None:
    world = World()
    world.start(0)
    raft = world.nodes[0].alive
    candidate = ReplicaKey(1, home(1))

    def grants(epoch: int, directory: bytes, log: LogPosition) -> bool:
        return raft.vote(VoteRequest(None, ReplicaKey(0, directory), candidate, epoch, log), world.now).granted

    assert not grants(1, ZERO_UUID, LogPosition(1, 5))
    assert not grants(2, home(7), LogPosition(1, 5)), "it means the disk we had before"
    assert grants(3, world.nodes[0].directory_id, LogPosition(1, 5))
    assert grants(4, ZERO_UUID, LogPosition(0, 0))
