"""Ready is who is registered, counted on and serving; whoever is not says why."""

from klamm.runtime.health import why_not_ready
from tests.node.cluster_world import ClusterWorld, Member

SESSION_MS = 3_000.0


def reason(member: Member) -> str:
    return "\n".join(why_not_ready(member.node, member.world.now))


def follower_of(world: ClusterWorld) -> Member:
    """A broker that is not the controller."""
    world.run_until(lambda: world.controller() is not None)
    return next(member for member in world.alive if member is not world.controller())


def all_killed(world: ClusterWorld) -> ClusterWorld:
    for member in list(world.alive):
        member.kill()
    return world


def test_all_brokers_of_a_cluster_are_ready_and_stay_so() -> None:
    world = ClusterWorld()
    for _ in range(20):
        world.run(500.0)
        assert [reason(member) for member in world.alive] == ["", "", ""]


def test_a_broker_that_starts_is_not_ready_before_it_is_counted_on() -> None:
    world = all_killed(ClusterWorld())
    world[0].start()
    world.run(2_000.0)
    assert reason(world[0]) == "this broker is not registered with a controller"
    world[1].start()
    seen, began_ms = [], world.now_ms
    while reason(world[0]):
        seen.append(reason(world[0]))
        world._next()
        assert world.now_ms < began_ms + 20_000.0
    assert seen[-1] == "this broker is registered, and the controller does not count on it yet"
    assert world[0].is_serving


def test_a_broker_that_was_fenced_while_it_stood_still_knows_before_it_is_ready_again() -> None:
    world = ClusterWorld()
    member = follower_of(world)
    member.is_frozen = True
    others = [each for each in world.alive if each is not member]
    world.run_until(lambda: all(each.broker.image.brokers[member.number].fenced for each in others))
    member.is_frozen = False
    assert reason(member).startswith("no controller has answered a heartbeat for 3000 ms")
    member.thaw()
    seen = {reason(member)}
    while member.broker.image.brokers[member.number].epoch < 0 or reason(member):
        seen.add(reason(member))
        world._next()
        assert world.now_ms < 30_000.0
    assert "this broker is fenced" in seen
    world.run_until(lambda: not others[0].broker.image.brokers[member.number].fenced)


def test_a_broker_that_is_cut_off_stops_being_ready_after_a_session() -> None:
    """It cannot hear that it was fenced."""
    world = ClusterWorld()
    member = follower_of(world)
    world.isolate(member.number)
    world.run(1_000.0)
    assert not reason(member), "a moment's silence is nothing"
    world.run(SESSION_MS)
    assert reason(member).startswith("no controller has answered")
    world.heal()
    world.run_until(lambda: not reason(member))


def test_a_broker_that_stops_is_not_ready() -> None:
    world = ClusterWorld()
    world[2].begin_to_stop()
    assert reason(world[2]) == "this broker is stopping"


def test_a_witness_is_ready_when_it_knows_who_leads_the_quorum() -> None:
    world = all_killed(ClusterWorld(2, voters=(0, 1, 2), witnesses=(2,)))
    world[2].start()
    world.run(1_000.0)
    assert reason(world[2]) == "the quorum has no leader that this node knows of"
    world[0].start()
    world.run_until(lambda: not reason(world[2]))
