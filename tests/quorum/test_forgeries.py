"""Requests that somebody forges: while a leader lives they change nothing, and what is true in them is found out.

Whom the quorum believes: docs/decisions/0014-whom-the-quorum-believes.md.
"""

from collections.abc import Callable

import pytest

from klamm.errors import ErrorCode
from klamm.quorum.election import LAST_EPOCH, Election, UnreadableElection, read_election, write_election
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.leader import MOST_REPLICAS
from klamm.quorum.messages import (
    Address,
    BeginEpoch,
    EndEpoch,
    LogPosition,
    QuorumFetch,
    QuorumFetched,
    SnapshotFetch,
    SnapshotId,
    VoteReply,
    VoteRequest,
)
from klamm.quorum.raft import DIRECTORY
from klamm.quorum.roles import Role
from klamm.quorum.voters import Voters
from tests.quorum.checks import Checks
from tests.quorum.test_stories import elected, others, running
from tests.quorum.world import World

NOBODY_ASKED = ReplicaKey(-1)
STRANGER = ReplicaKey(7)
FAR = LogPosition(0, 1 << 40)
EPOCHS = [-(2**31), -1, 0, 1, 2, 3, 6, 11, 12, 1_000, LAST_EPOCH, LAST_EPOCH + 1, 2**31 - 2, 2**31 - 1]
"""The leader's is 1."""


def key_of(world: World, node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, world.nodes[node_id].directory_id)


def state(world: World) -> list[tuple[object, ...]]:
    """Everything that a forged request must not move."""
    found: list[tuple[object, ...]] = []
    for node in world.nodes.values():
        raft = node.alive
        found.append((raft.role, raft.epoch, raft.leader_id, raft.voted_id, read_election(node.disk, DIRECTORY)))
        found.append((list(raft.voters.values()), raft.high_watermark, raft.address_of(raft.leader_id)))
    return found


def forgeries(world: World, target: int, epoch: int) -> list[object]:
    """Whatever can be said of this epoch to this node."""
    here, names = key_of(world, target), [STRANGER, *(key_of(world, each) for each in world.nodes)]
    snapshot = SnapshotId(3, 1)
    found: list[object] = []
    for name in names:
        for voter in (NOBODY_ASKED, here):
            for last in {0, 1, max(epoch - 1, 0), epoch}:
                for pre_vote in (False, True):
                    found.append(VoteRequest(None, voter, name, epoch, LogPosition(last, 1 << 40), pre_vote))
            found.append(BeginEpoch(None, voter, name.node_id, epoch))
            found.append(BeginEpoch(None, voter, name.node_id, epoch, Address("elsewhere", 9)))
        found.append(EndEpoch(None, name.node_id, epoch, names))
        found.append(EndEpoch(None, name.node_id, epoch))
        found.append(SnapshotFetch(None, name, epoch, snapshot, 0, 100))
        if name.node_id in (STRANGER.node_id, target):
            # (In the name of a follower that is known it would be believed: who sends it is not shown.)
            found.append(QuorumFetch(None, name, epoch, 0, 0, 0, 1_000, 0))
    return found


@pytest.mark.parametrize("epoch", EPOCHS)
def test_whatever_is_forged_while_a_leader_lives_moves_nothing(epoch: int) -> None:
    world, leader = running()
    before = state(world)
    for target in world.nodes:
        for request in forgeries(world, target, epoch):
            world._asked(world.nodes[target], request, lambda reply: None)  # type: ignore[arg-type]
            world.settle(world.nodes[target])
            assert state(world) == before, request
            world.run(3)
    world.run(5_000)
    assert state(world) == before and elected(world) == leader, "nor does it later"
    record = world.propose(leader)
    world.run(100)
    assert all(record in node.applied for node in world.nodes.values())


@pytest.mark.parametrize("voters", [1, 3])
def test_one_vote_of_a_hundred_bytes_does_not_end_the_quorum(voters: int) -> None:
    world, _ = running(voters=voters)
    before = state(world)
    for node in world.nodes.values():
        forged = VoteRequest(None, NOBODY_ASKED, STRANGER, 2**31 - 1, LogPosition(2**31 - 2, 0))
        assert node.alive.vote(forged, world.now).error != ErrorCode.NONE
        world.settle(node)
    world.run(5_000)
    assert state(world) == before
    for node_id in world.nodes:
        world.kill(node_id)
    world.start()
    assert world.nodes[elected(world)].alive.epoch == 2


def test_a_forged_end_does_not_make_a_follower_doubt_its_leader() -> None:
    world, leader = running()
    follower = world.nodes[others(world, leader)[0]].alive
    assert follower.end_quorum_epoch(EndEpoch(None, leader, 1), world.now).error is ErrorCode.NONE
    assert follower._me.believes_in_leader()
    world.run(100)
    assert follower.role is Role.FOLLOWER


def test_nobody_keeps_a_dead_leader_alive_in_its_name() -> None:
    world, leader = running()
    world.isolate(leader)
    for _ in range(40):
        for node_id in others(world, leader):
            world.nodes[node_id].alive.begin_quorum_epoch(BeginEpoch(None, NOBODY_ASKED, leader, 1), world.now)
            world.settle(world.nodes[node_id])
        world.run(50)
    assert world.leader() not in (None, world.nodes[leader])


def test_a_claim_makes_nobody_send_the_log() -> None:
    """Whoever is asked about a claim answers with what comes next in its log, as to any fetch: as little as can be."""
    world, leader = running()
    follower = others(world, leader)[0]
    raft = world.nodes[follower].alive
    world.sent.clear()
    raft.begin_quorum_epoch(BeginEpoch(None, NOBODY_ASKED, leader, 2), world.now)
    world.settle(world.nodes[follower])
    world.run(5)
    (asked,) = [
        each.request for each in world.sent if isinstance(each.request, QuorumFetch) and each.request.max_wait_ms == 0
    ]
    assert isinstance(asked, QuorumFetch) and asked.max_bytes == 1


# Without a leader.


def test_a_refused_vote_moves_nothing_without_a_leader_either() -> None:
    world, leader = running()
    follower, other = others(world, leader)
    world.kill(leader)
    world.kill(other)
    world.run(3_000)
    before = state_of(world, follower)
    raft = world.nodes[follower].alive
    here, its_log = key_of(world, follower), raft._journal.position
    behind, beyond = LogPosition(0, 1), LogPosition(1, 1 << 40)
    for request in (
        VoteRequest(None, here, STRANGER, 2, its_log),
        VoteRequest(None, NOBODY_ASKED, STRANGER, 2, beyond),
        VoteRequest(None, here, key_of(world, other), 2, behind),
        VoteRequest(None, NOBODY_ASKED, key_of(world, other), 2, its_log),
        VoteRequest(None, here, key_of(world, other), 12, its_log),
        VoteRequest(None, here, ReplicaKey(other, bytes(15) + b"9"), 2, its_log),
        VoteRequest("another", here, key_of(world, other), 2, its_log),
        VoteRequest(None, here, key_of(world, other), LAST_EPOCH + 1, its_log),
        BeginEpoch(None, here, other, 2),
        EndEpoch(None, other, 2),
    ):
        world._asked(world.nodes[follower], request, lambda reply: None)
        assert state_of(world, follower) == before, request
    honest = VoteRequest(None, here, key_of(world, other), 2, its_log)
    assert raft.vote(honest, world.now).granted and raft.epoch == 2
    assert raft.begin_quorum_epoch(BeginEpoch(None, here, other, 2), world.now).leader_id == other, "we elected it"


def test_a_stranger_has_his_turn_when_those_that_are_known_had_theirs() -> None:
    world, leader = running()
    follower, other = others(world, leader)
    world.kill(leader)
    world.kill(other)
    raft = world.nodes[follower].alive
    world.run(5_000, lambda: raft.role is Role.PROSPECTIVE)
    request = VoteRequest(None, key_of(world, follower), STRANGER, 2, LogPosition(1, 1 << 40))
    assert raft.vote(request, world.now).error is ErrorCode.INCONSISTENT_VOTER_SET
    world.run(raft._me.settings.election_timeout_ms)
    assert raft.vote(request, world.now).granted, "it may be a voter that we have not heard of"


def test_where_a_voter_is_known_to_be_counts_for_more_than_what_is_said() -> None:
    world, leader = running()
    follower, other = others(world, leader)
    world.kill(leader)
    world.kill(other)
    world.run(3_000)
    raft = world.nodes[follower].alive
    here = key_of(world, follower)
    world.configured = Voters.configured([])
    raft._journal.voters.configured = world.configured
    assert raft.vote(VoteRequest(None, here, key_of(world, other), 2, raft._journal.position), world.now).granted
    raft.begin_quorum_epoch(BeginEpoch(None, here, other, 2, Address("elsewhere", 9)), world.now)
    assert raft.leader_id == other and raft.address_of(other) == Address(f"host-{other}", 9090)


def state_of(world: World, node_id: int) -> tuple[object, ...]:
    raft = world.nodes[node_id].alive
    return raft.epoch, raft.leader_id, raft.voted_id, read_election(world.nodes[node_id].disk, DIRECTORY)


@pytest.mark.parametrize(
    ("request_of", "code"),
    [
        (lambda here: VoteRequest(None, NOBODY_ASKED, STRANGER, 2, FAR), ErrorCode.INCONSISTENT_VOTER_SET),
        (lambda here: VoteRequest(None, here, ReplicaKey(-3), 2, FAR), ErrorCode.INVALID_REQUEST),
        (lambda here: VoteRequest(None, here, here, 2, FAR), ErrorCode.INVALID_REQUEST),
        (lambda here: VoteRequest(None, here, STRANGER, 2, LogPosition(2, 9)), ErrorCode.INVALID_REQUEST),
        (lambda here: VoteRequest(None, here, STRANGER, 2, LogPosition(1, -9)), ErrorCode.INVALID_REQUEST),
        (lambda here: VoteRequest(None, here, STRANGER, LAST_EPOCH + 1, FAR), ErrorCode.INVALID_REQUEST),
        (lambda here: VoteRequest(None, here, STRANGER, 0, FAR, True), ErrorCode.FENCED_LEADER_EPOCH),
        (lambda here: VoteRequest("x", here, STRANGER, 2, FAR), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (lambda here: VoteRequest(None, STRANGER, STRANGER, 2, FAR), ErrorCode.INVALID_VOTER_KEY),
        (lambda here: BeginEpoch(None, here, 7, 2), ErrorCode.INCONSISTENT_VOTER_SET),
        (lambda here: BeginEpoch(None, here, -7, 2), ErrorCode.INVALID_REQUEST),
        (lambda here: BeginEpoch(None, here, here.node_id, 2), ErrorCode.INVALID_REQUEST),
        (lambda here: BeginEpoch(None, here, 7, 2**31 - 1), ErrorCode.INVALID_REQUEST),
        (lambda here: BeginEpoch(None, here, 7, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (lambda here: EndEpoch(None, 7, 2), ErrorCode.INCONSISTENT_VOTER_SET),
        (lambda here: EndEpoch(None, 7, 2**31 - 1), ErrorCode.INVALID_REQUEST),
        (lambda here: EndEpoch(None, 7, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (lambda here: QuorumFetch(None, STRANGER, 2, 0, 0, 0, 1, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (lambda here: QuorumFetch(None, STRANGER, -1, 0, 0, 0, 1, 0), ErrorCode.INVALID_REQUEST),
        (lambda here: QuorumFetch(None, ReplicaKey(-2), 1, 0, 0, 0, 1, 0), ErrorCode.INVALID_REQUEST),
        (lambda here: QuorumFetch(None, here, 1, 0, 0, 0, 1, 0), ErrorCode.INVALID_REQUEST),
        (lambda here: SnapshotFetch(None, STRANGER, 2, SnapshotId(3, 1), 0, 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_what_a_leader_answers_to_it(request_of: Callable[[ReplicaKey], object], code: ErrorCode) -> None:
    world, leader = running()
    request = request_of(key_of(world, leader))
    reply = world._asked(world.nodes[leader], request, lambda reply: None)  # type: ignore[arg-type]
    assert reply is not None and reply.error is code and (reply.epoch, reply.leader_id) == (1, leader)


# What is true gets through.


def test_a_follower_of_a_deposed_leader_asks_whoever_claims_to_be_the_next() -> None:
    """Three of five cannot hear their leader and elect another; the fifth still can, and hears of the next one."""
    world, leader = running(voters=5)
    between, *cut_off = others(world, leader)
    world.cut = {pair for other in cut_off for pair in ((leader, other), (other, leader))}
    world.run(5_000, lambda: world.leader() not in (None, world.nodes[leader]))
    successor = elected(world)
    assert world.nodes[leader].alive.is_leader, "it has not given up yet"
    took_ms = world.run(5_000, lambda: world.nodes[between].alive.leader_id == successor)
    assert took_ms < 20


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ahead", [1, 2, 9, 10, 11, 5_000])
def test_a_voter_that_is_ahead_makes_the_leader_step_down_by_what_it_answers(seed: int, ahead: int) -> None:
    """It began elections that nobody else remembers. It cannot follow an older epoch than its own."""
    world, leader = running(seed=seed)
    follower = others(world, leader)[0]
    world.kill(follower)
    write_election(world.nodes[follower].disk, DIRECTORY, Election(1 + ahead, -1, *key_of(world, follower)))
    world.start(follower)
    took_ms = world.run(5_000, lambda: is_whole(world, 2 + ahead))
    assert is_whole(world, 2 + ahead) and took_ms < 400, took_ms


def test_an_observer_that_is_ahead_makes_the_leader_step_down_too() -> None:
    """It was a voter, gave its vote in an election that came to nothing, and votes no more."""
    world, leader = running()
    follower = others(world, leader)[0]
    world.nodes[leader].alive.remove_voter(follower, world.nodes[follower].directory_id, world.now)
    world.settle(world.nodes[leader])
    world.run(200)
    world.kill(follower)
    write_election(world.nodes[follower].disk, DIRECTORY, Election(5, -1, *key_of(world, follower)))
    world.start(follower)
    took_ms = world.run(5_000, lambda: is_whole(world, 6))
    assert is_whole(world, 6) and took_ms < 500, took_ms


def test_one_that_was_removed_unheard_and_is_ahead_makes_the_leader_step_down_too() -> None:
    """It takes itself for a voter, and asks for votes that nobody gives it."""
    world, leader = running()
    follower = others(world, leader)[0]
    world.kill(follower)
    world.nodes[leader].alive.remove_voter(follower, world.nodes[follower].directory_id, world.now)
    world.settle(world.nodes[leader])
    world.run(200)
    write_election(world.nodes[follower].disk, DIRECTORY, Election(5, -1, *key_of(world, follower)))
    world.start(follower)
    assert world.nodes[follower].alive.is_voter, "it thinks"
    took_ms = world.run(5_000, lambda: is_whole(world, 6))
    assert is_whole(world, 6) and took_ms < 500, took_ms


def is_whole(world: World, epoch: int) -> bool:
    leader = world.leader()
    return leader is not None and all(
        node.alive.epoch >= epoch and node.alive.leader_id == leader.node_id for node in world.nodes.values()
    )


@pytest.mark.parametrize("seed", range(5))
def test_voters_that_are_far_behind_elect_whoever_has_the_longest_log(seed: int) -> None:
    world, leader = running(seed=seed)
    behind, best = others(world, leader)
    world.isolate(behind)
    record = world.propose(leader)
    world.run(100)
    for node_id in world.nodes:
        world.kill(node_id)
    write_election(world.nodes[best].disk, DIRECTORY, Election(700, -1, *key_of(world, best)))
    world.heal()
    world.start(behind, best)
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert elected(world) == best and took_ms < 400, took_ms
    world.run(100)
    assert record in world.nodes[behind].applied


def grown(voters: int, without: int) -> World:
    """One more voter, of which one of the others has not heard; and the leader is dead."""
    world, leader = running(voters=voters, observers=1)
    added = voters
    world.nodes[added].is_controller = True
    world.kill(added)
    world.start(added)
    world.run(1_000)
    assert leader != without
    world.isolate(without)
    world.add_voter(leader, added)
    world.run(100)
    assert added in world.nodes[leader].alive.voters and added not in world.nodes[without].alive.voters
    assert world.nodes[leader].alive.high_watermark == world.nodes[leader].alive.log.end_offset
    world.kill(leader)
    return world


def test_a_new_voter_is_elected_by_one_that_has_not_heard_of_it() -> None:
    """A voter was added, and that is committed on two of three. One of these dies: nobody but the new one can lead, and
    it needs the vote of the one that does not know it."""
    world = grown(voters=2, without=1)
    world.heal()
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert elected(world) == 2 and took_ms < 3_000
    record = world.propose(2)
    world.run(200)
    assert record in world.nodes[1].applied and 2 in world.nodes[1].alive.voters


def test_a_voter_that_has_not_heard_of_a_new_one_follows_it_by_what_others_answer() -> None:
    """It did not vote for it, and knows no address of it either."""
    world = grown(voters=4, without=3)
    world.heal()
    world.cut = {(4, 3)}
    world.run(5_000, lambda: world.leader() is not None)
    while elected(world) != 4:
        # Until it is the new one's turn.
        old = world.leader()
        assert old is not None
        old.alive.resign(world.now)
        world.settle(old)
        world.run(1_000)
    world.heal()
    world.run(3_000, lambda: world.nodes[3].alive.leader_id == 4)
    assert world.nodes[3].alive.leader_id == 4


# Fetches in the names of others.


def fetch(world: World, leader: int, replica: ReplicaKey) -> None:
    raft = world.nodes[leader].alive
    position, end = raft._journal.position, raft.high_watermark
    raft.fetch(QuorumFetch(None, replica, 1, position.end_offset, position.epoch, end, 1_000, 0), world.now)
    world.settle(world.nodes[leader])


def test_nobody_takes_the_leader_for_one_that_lost_its_disk() -> None:
    world, leader = running()
    before = world.nodes[leader].alive.voters
    world.run(3_000)
    for _ in range(5):
        fetch(world, leader, ReplicaKey(leader, bytes(15) + b"9"))
        world.run(100)
    assert elected(world) == leader and world.nodes[leader].alive.voters == before


@pytest.mark.parametrize("is_up", [False, True])
def test_nobody_takes_the_place_of_a_voter_that_is_away(is_up: bool) -> None:
    """Who fetches as this node with another disk may be it. Asked where it is configured to be, it says so, or not."""
    world, leader = running()
    away = others(world, leader)[0]
    before = world.nodes[leader].alive.voters
    if not is_up:
        world.kill(away)
    world.isolate(away)
    world.run(2_000)
    if is_up:
        world.cut = {(away, leader)}
    for _ in range(20):
        fetch(world, leader, ReplicaKey(away, bytes(15) + b"9"))
        fetch(world, leader, ReplicaKey(away))
        world.run(100)
    assert world.nodes[leader].alive.voters == before
    world.heal()
    if not is_up:
        world.start(away)
    world.run(3_000)
    assert world.nodes[away].alive.is_voter and elected(world) in world.nodes


def test_observers_without_number_are_not_all_remembered() -> None:
    world, leader = running()
    leading = world.nodes[leader].alive._me.leading
    assert leading is not None
    for number in range(MOST_REPLICAS + 500):
        fetch(world, leader, ReplicaKey(100 + number % 50, number.to_bytes(16, "big")))
    assert len(leading.replicas) <= MOST_REPLICAS
    assert all(leading.replicas[key_of(world, each)].end_offset == 3 for each in others(world, leader))


# Answers.


def test_an_answer_of_an_epoch_beyond_reach_is_as_good_as_none() -> None:
    world, leader = running()
    follower = world.nodes[others(world, leader)[0]]
    following = follower.alive._me.following
    assert following is not None
    asking = following.asking
    assert asking is not None
    follower.alive.heard(asking, QuorumFetched(LAST_EPOCH + 1, leader), world.now)
    assert follower.alive.epoch == 1 and following.asking is None
    world.run(1_000)
    assert follower.alive.leader_id == leader
    world.kill(leader)
    world.run(30, lambda: follower.alive.role is Role.PROSPECTIVE)
    asked = [each for each in world.sent if each.to != leader and isinstance(each.request, VoteRequest)][-1]
    world.nodes[asked.request.candidate.node_id].alive.heard(asked, VoteReply(2**31 - 1, granted=True), world.now)  # type: ignore[union-attr]
    assert all(node.alive.epoch <= 2 for node in world.nodes.values() if node.raft is not None)
    elected(world)


def test_records_of_a_later_epoch_than_their_leaders_are_not_taken() -> None:
    world, leader = running()
    follower = world.nodes[others(world, leader)[0]]
    world.propose(leader)
    log = world.nodes[leader].alive.log
    data = bytearray(bytes(log.read(3, 1 << 20, 4)))
    data[12:16] = (2**31 - 1).to_bytes(4, "big")
    following = follower.alive._me.following
    assert following is not None and following.asking is not None
    forged = QuorumFetched(1, leader, high_watermark=4, start_offset=0, records=bytes(data))
    follower.alive.heard(following.asking, forged, world.now)
    assert follower.alive.log.end_offset == 3
    world.run(2_000)
    assert follower.alive.log.end_offset == 4 and follower.alive._journal.position.epoch == 1


# What is on the disk.


def test_no_epoch_is_written_down_that_could_not_be_told() -> None:
    world = World()
    with pytest.raises(AssertionError):
        write_election(world.nodes[0].disk, DIRECTORY, Election(LAST_EPOCH + 1))


@pytest.mark.parametrize("epoch", [-1, LAST_EPOCH + 1, 2**31 - 1, 2**31, 2**70])
def test_an_epoch_beyond_reach_is_told_with_what_to_do(epoch: int) -> None:
    """As an earlier version wrote it down. What is told to do helps."""
    world, leader = running()
    record = world.propose(leader)
    world.run(100)
    poisoned = (
        b'{"leaderId":-1,"leaderEpoch":%d,"votedId":0,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'
    )
    for node in world.nodes.values():
        world.kill(node.node_id)
        node.disk.write_whole(f"{DIRECTORY}/quorum-state", poisoned % epoch)
    for node_id in world.nodes:
        with pytest.raises(UnreadableElection, match=r"quorum-state.*set leaderEpoch to 1000000.*start them"):
            world.start(node_id)
        world.nodes[node_id].raft = None
    for node in world.nodes.values():
        told = poisoned.replace(b"%d", b"1000000").replace(b'"votedId":0', b'"votedId":-1')
        node.disk.write_whole(f"{DIRECTORY}/quorum-state", told)
    Checks(world)
    world.start()
    assert world.nodes[elected(world)].alive.epoch == 1_000_001
    world.run(200)
    assert all(record in node.applied for node in world.nodes.values())
