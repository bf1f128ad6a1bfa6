"""The quorum's life in small stories: the first election, a leader that dies, is cut off, resigns, and comes back."""

import pytest

from klamm.errors import ErrorCode, KafkaError
from klamm.quorum.election import Election, UnreadableElection, read_election, write_election
from klamm.quorum.facts import ElectionBegun
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import VoteRequest
from klamm.quorum.raft import DIRECTORY
from klamm.quorum.roles import Role
from tests.quorum.checks import Checks
from tests.quorum.world import World


def elected(world: World) -> int:
    """Run until somebody leads actively; who."""
    world.run(5_000, lambda: world.leader() is not None)
    leader = world.leader()
    assert leader is not None, "\n".join(world.story)
    return leader.node_id


def running(voters: int = 3, observers: int = 0, seed: int = 0) -> tuple[World, int]:
    """A quorum that has elected its leader and settled."""
    world = World(seed, voters, observers)
    Checks(world)
    world.start()
    leader = elected(world)
    world.run(200)
    return world, leader


def others(world: World, *but: int) -> list[int]:
    return [node_id for node_id in world.nodes if node_id not in but]


# Elections.


@pytest.mark.parametrize("seed", range(10))
def test_three_nodes_that_start_together_have_a_leader_within_milliseconds(seed: int) -> None:
    world = World(seed)
    Checks(world)
    world.start()
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert world.leader() is not None and took_ms < 50


def test_the_first_election_takes_every_voter() -> None:
    world = World()
    Checks(world)
    world.start(0, 1)
    world.run(5_000)
    assert world.leader() is None
    assert [world.nodes[each].alive.epoch for each in (0, 1)] == [0, 0], "asking beforehand begins no epoch"
    world.start(2)
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert world.leader() is not None and took_ms < 300


def test_the_first_leader_records_the_voters_with_their_directories() -> None:
    world, leader = running()
    for node in world.nodes.values():
        voters = node.alive.voters
        assert voters.is_recorded
        assert [voter.directory_id for voter in voters.values()] == [each.directory_id for each in world.nodes.values()]
    assert world.nodes[leader].alive.log.end_offset == 3, "LeaderChange, KRaftVersion and Voters in one batch"


@pytest.mark.parametrize("seed", range(10))
def test_later_a_majority_is_enough(seed: int) -> None:
    world, leader = running(seed=seed)
    for node_id in world.nodes:
        world.kill(node_id)
    world.start(*others(world, leader))
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert elected(world) != leader and took_ms < 60


@pytest.mark.parametrize("seed", range(20))
def test_a_dead_leader_is_replaced_within_tens_of_milliseconds(seed: int) -> None:
    """Its connections close and dialling it again is refused: nobody waits for a timeout."""
    world, leader = running(seed=seed)
    before = world.nodes[leader].alive.epoch
    world.kill(leader)
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert world.leader() is not None and took_ms < 60, took_ms
    assert elected(world) != leader and world.nodes[elected(world)].alive.epoch == before + 1, "there was no tie"


def test_a_silent_leader_is_replaced_after_the_fetch_timeout() -> None:
    world, leader = running()
    world.isolate(leader)
    took_ms = world.run(5_000, lambda: world.leader() not in (None, world.nodes[leader]))
    assert 800 <= took_ms < 1_500, "counted from the last time it was heard"
    world.run(2_000)
    assert not world.nodes[leader].alive.is_leader, "a majority does not fetch from it any more"


def test_an_old_leader_that_comes_back_follows() -> None:
    world, leader = running()
    world.isolate(leader)
    with_nobody = world.propose(leader)
    world.run(3_000)
    successor = elected(world)
    kept = world.propose(successor)
    world.heal()
    world.run(3_000)
    assert elected(world) == successor
    for node in world.nodes.values():
        assert kept in node.applied and with_nobody not in node.applied


def test_a_node_that_was_cut_off_disturbs_nobody_when_it_returns() -> None:
    world, leader = running()
    epoch = world.nodes[leader].alive.epoch
    away = others(world, leader)[0]
    world.isolate(away)
    world.run(20_000)
    assert world.nodes[away].alive.epoch == epoch, "it only asked beforehand"
    world.heal()
    world.run(2_000)
    assert elected(world) == leader and world.nodes[leader].alive.epoch == epoch
    assert world.nodes[away].alive.leader_id == leader


@pytest.mark.parametrize("seed", range(10))
def test_a_leader_that_was_only_cut_off_is_followed_again_as_soon_as_it_answers(seed: int) -> None:
    """What others say of it does not count for a while; what it says itself does."""
    world, leader = running(seed=seed)
    epoch = world.nodes[leader].alive.epoch
    away = others(world, leader)[seed % 2]
    world.isolate(away)
    world.run(1_100)
    assert world.nodes[away].alive.role is Role.PROSPECTIVE
    world.heal()
    # Questions that were lost are asked again after the election timeout.
    took_ms = world.run(5_000, lambda: world.nodes[away].alive.leader_id == leader)
    assert took_ms < 500 and world.nodes[leader].alive.epoch == epoch


def test_a_follower_that_restarts_disturbs_nobody() -> None:
    world, leader = running()
    epoch = world.nodes[leader].alive.epoch
    follower = others(world, leader)[0]
    for _ in range(5):
        world.kill(follower)
        world.start(follower)
        took_ms = world.run(1_000, lambda: world.nodes[follower].alive.leader_id == leader)
        assert took_ms < 50
    assert world.nodes[leader].alive.epoch == epoch


def test_who_still_hears_its_leader_supports_nobody_else() -> None:
    world, leader = running()
    follower, other = others(world, leader)
    node = world.nodes[follower]
    log = node.alive._journal.position
    request = VoteRequest(None, node.alive._me.identity.key, world.nodes[other].alive._me.identity.key, 1, log, True)
    reply = node.alive.vote(request, world.now)
    assert not reply.granted and reply.leader_id == leader
    node.alive.node_is_gone(leader, world.now)
    assert node.alive.vote(request, world.now).granted, "now it has evidence of its own"


def test_a_leader_that_restarts_before_anybody_noticed_is_replaced_at_once() -> None:
    world, leader = running()
    world.weather.notices_death = 0.0
    world.kill(leader)
    world.start(leader)
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert world.leader() is not None and took_ms < 200
    assert world.leader().alive.epoch == 2  # type: ignore[union-attr]


def test_a_leader_that_resigns_names_the_best_successor() -> None:
    world, leader = running()
    behind, best = others(world, leader)
    world.isolate(behind)
    world.propose(leader)
    world.run(100)
    world.heal()
    world.nodes[leader].alive.resign(world.now)
    world.settle(world.nodes[leader])
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    assert elected(world) == best and took_ms < 50


def test_two_voters_never_lead_without_each_other() -> None:
    world, leader = running(voters=2)
    (follower,) = others(world, leader)
    world.kill(leader)
    world.run(10_000)
    assert world.leader() is None and world.nodes[follower].alive.role is Role.PROSPECTIVE
    world.start(leader)
    elected(world)


def test_a_lone_candidate_asks_more_and_more_slowly() -> None:
    world, _ = running()
    for node_id in others(world, 0):
        world.kill(node_id)
    world.run(5_000)
    before = len(world.sent)
    world.run(10_000)
    assert len(world.sent) - before < 2 * 10_000 / 100
    told = [fact for fact in world.nodes[0].facts if isinstance(fact, ElectionBegun)]
    assert len(told) <= 3, "it tells so once, not with every round"


def test_a_vote_of_an_earlier_epoch_says_nothing_about_a_later_one() -> None:
    """The file is older than the log, which tells of a later epoch: who was voted for before has no vote now."""
    world, leader = running()
    follower = others(world, leader)[0]
    voted = ReplicaKey(9, bytes(16))
    world.kill(follower)
    write_election(world.nodes[follower].disk, DIRECTORY, Election(0, -1, *voted))
    world.start(follower)
    raft = world.nodes[follower].alive
    assert (raft.epoch, raft.voted_id) == (1, -1)
    candidate = world.nodes[others(world, leader, follower)[0]].alive._me.identity.key
    assert raft.vote(VoteRequest(None, raft._me.identity.key, candidate, 2, raft._journal.position), world.now).granted
    assert read_election(world.nodes[follower].disk, DIRECTORY) == Election(2, -1, *candidate), "written down anew"


def test_a_voter_that_lost_the_memory_of_its_votes_does_not_start() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    world.kill(follower)
    world.nodes[follower].disk.remove(f"{DIRECTORY}/quorum-state")
    with pytest.raises(UnreadableElection, match="a vote may be forgotten"):
        world.start(follower)


# Committing.


def test_records_are_committed_without_waiting_for_any_interval() -> None:
    world, leader = running()
    record = world.propose(leader)
    took_ms = world.run(1_000, lambda: all(record in node.applied for node in world.nodes.values()))
    assert took_ms < 30, "a few messages and two flushes"


def test_a_follower_acknowledges_only_what_is_on_its_disk() -> None:
    world, leader = running()
    for node_id in others(world, leader):
        world.nodes[node_id].flushing = True  # Its disk hangs: a flush that is asked for is never done.
    world._flush = lambda node, flush: None  # type: ignore[method-assign]
    before = world.nodes[leader].alive.high_watermark
    world.propose(leader)
    world.run(400)
    assert all(node.alive.log.end_offset == before + 1 for node in world.nodes.values())
    assert world.nodes[leader].alive.high_watermark == before


def test_a_minority_commits_nothing() -> None:
    world, leader = running(voters=5)
    for node_id in others(world, leader)[:3]:
        world.isolate(node_id)
    record = world.propose(leader)
    world.run(1_000)
    assert all(record not in node.applied for node in world.nodes.values())


def test_what_an_earlier_epoch_left_is_committed_with_the_new_leaders_first_batch() -> None:
    """'Only log entries from the leader's current term are committed by counting replicas.'"""
    world, leader = running()
    follower, other = others(world, leader)
    world.isolate(other)
    record = world.propose(leader)
    world.run(5, lambda: world.nodes[follower].alive.log.recovery_point == 4)
    world.kill(leader)
    world.heal()
    world.run(5_000, lambda: world.leader() is not None)
    assert elected(world) == follower
    world.run(100)
    assert record in world.nodes[follower].applied and record in world.nodes[other].applied


def test_only_the_leader_takes_proposals() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    with pytest.raises(KafkaError) as refused:
        world.propose(follower)
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


# Observers.


def test_observers_follow_and_do_not_count() -> None:
    world, leader = running(voters=1, observers=2)
    assert leader == 0
    record = world.propose(0)
    world.run(100)
    assert all(record in node.applied for node in world.nodes.values())
    for node_id in (1, 2):
        world.kill(node_id)
    again = world.propose(0)
    world.run(100)
    assert again in world.nodes[0].applied


def test_an_observer_finds_the_next_leader() -> None:
    world, leader = running(observers=1)
    world.kill(leader)
    took_ms = world.run(5_000, lambda: world.nodes[3].alive.leader_id not in (-1, leader))
    assert took_ms < 150
    record = world.propose(elected(world))
    world.run(100)
    assert record in world.nodes[3].applied


@pytest.mark.parametrize("seed", range(10))
def test_a_leader_that_stands_still_does_not_keep_observers_from_the_next(seed: int) -> None:
    """It is one of those whom they ask, and says nothing for as long as they wait."""
    world, leader = running(observers=3, seed=seed)
    world.isolate(leader)

    def know(*node_ids: int) -> bool:
        return all(world.nodes[each].alive.leader_id not in (-1, leader) for each in node_ids)

    world.run(10_000, lambda: know(*others(world, leader, 3, 4, 5)))
    assert world.run(10_000, lambda: know(3, 4, 5)) < 600


def test_the_leader_describes_everybody() -> None:
    world, leader = running(observers=1)
    world.propose(leader)
    world.run(100)
    found = world.nodes[leader].alive.describe(world.now)
    assert (found.leader_id, found.epoch, found.high_watermark) == (leader, 1, 4)
    assert [each.replica.node_id for each in found.voters] == [0, 1, 2]
    assert [each.replica.node_id for each in found.observers] == [3]
    assert {each.end_offset for each in (*found.voters, *found.observers)} == {4}
    assert all(world.now.wall_ms - each.last_caught_up_ms < 1_000 for each in (*found.voters, *found.observers))
    with pytest.raises(KafkaError):
        world.nodes[others(world, leader)[0]].alive.describe(world.now)


# Disks.


def test_a_leader_whose_disk_fails_makes_room_for_another() -> None:
    world, leader = running()
    world.nodes[leader].disk.fail_once("flush")
    world.propose(leader)
    took_ms = world.run(5_000, lambda: world.leader() not in (None, world.nodes[leader]))
    assert took_ms < 100
    with pytest.raises(KafkaError) as refused:
        world.propose(leader)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_voter_that_cannot_write_its_vote_down_does_not_vote() -> None:
    world, leader = running()
    follower, other = others(world, leader)
    world.nodes[follower].disk.fail_once("write_whole")
    world.kill(leader)
    world.run(5_000)
    assert world.leader() is None, "the vote of two of three is needed, and one cannot give it"
    assert world.nodes[follower].alive.role is Role.UNATTACHED
    world.kill(follower)
    world.start(follower)
    assert elected(world) in (follower, other)
