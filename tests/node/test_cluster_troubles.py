"""Several nodes in memory when more goes wrong than a death: failing and full disks, a number that two machines have,
controllers that hang, answers that nobody understands. Each story was once told by a reviewer, with another end."""

from collections.abc import Callable

import pytest

from klamm.broker.answer import Answer, Applied, Elsewhere, Later, Reply
from klamm.broker.call import Call
from klamm.broker.facts import LogsOpened
from klamm.controller.names import CLUSTER_METADATA
from klamm.errors import ErrorCode
from klamm.handlers import broker_heartbeat, create_topics, fetch
from klamm.ids import Now, TopicPartition
from klamm.log import checkpoint
from klamm.metadata.snapshot import records_of
from klamm.node.effects import Wake
from klamm.node.events import Woke
from klamm.node.facts import AnswerNotUnderstood, HandlerFailed, MetadataFailed, Registered, RegistrationRefused
from klamm.wire.apis import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    FETCH,
)
from klamm.wire.frames import encoded_request
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from klamm.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from klamm.wire.messages.alter_partition import PartitionDataResponse as AlteredPartition
from klamm.wire.messages.alter_partition import TopicDataResponse as AlteredTopic
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from klamm.wire.messages.broker_registration import BrokerRegistrationResponse
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from klamm.wire.messages.envelope import EnvelopeRequest
from klamm.wire.messages.fetch import FetchRequest, FetchResponse
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.node.cluster_world import ClusterClient, ClusterWorld, Member
from tests.node.requests import delete_records
from tests.node.test_cluster import TOPIC, create, produce, state
from tests.node.world import api_of

SESSION_MS = 10_000.0
"""More than a broker's session lasts, with some time for a new leader."""

NEW = "new"
OF_THE_FUTURE = 4_711
"""An error code that nobody knows yet."""


@pytest.fixture
def world() -> ClusterWorld:
    """Three nodes that have been at it for a while."""
    world = ClusterWorld()
    world.run(1_000.0)
    return world


@pytest.fixture
def four() -> ClusterWorld:
    """The same with a fourth that has no vote."""
    world = ClusterWorld(4, voters=[0, 1, 2])
    world.run(1_000.0)
    return world


def controller_of(world: ClusterWorld) -> Member:
    controller = world.controller()
    assert controller is not None
    return controller


def another(world: ClusterWorld, *than: Member) -> Member:
    return next(member for member in world.members.values() if member not in than)


def creation(name: str = NEW, timeout_ms: int = 30_000) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)


def outcome(client: ClusterClient, number: int) -> ErrorCode:
    """What became of the only topic of a creation."""
    assert client.is_open, "the connection was closed"
    (topic,) = client.answers[number].topics
    return ErrorCode(topic.error_code)


def has_marker(member: Member) -> bool:
    return member.disk.exists(checkpoint.CLEAN_SHUTDOWN)


def checkpointed(member: Member, file: str) -> dict[TopicPartition, int]:
    found = checkpoint.read_offsets(member.disk.read_whole(file)) if member.disk.exists(file) else {}
    assert found is not None
    return found


# The metadata log fails.


@pytest.mark.parametrize("call", ["append", "flush"])
def test_a_node_whose_metadata_log_fails_ends_and_what_it_led_is_led_by_others(world: ClusterWorld, call: str) -> None:
    """It would never hear again what the cluster decides. If it went on, it would acknowledge records as a leader that
    it no longer is, without end."""
    create(world, partitions=3)
    other = controller_of(world)
    index = next(index for index in range(3) if state(world, partition=index).leader != other.number)
    failing = world[state(world, partition=index).leader]
    failing.disk_fails(call, CLUSTER_METADATA)
    world.client(other.number).ask(creation())
    world.run_until(lambda: failing.has_stopped, 1_000.0)
    assert any(isinstance(fact, MetadataFailed) for fact in failing.told)
    assert not has_marker(failing), "it has to be recovered"
    world.run_until(lambda: state(world, other.number, index).leader not in (failing.number, -1), SESSION_MS)


def test_a_controller_whose_metadata_log_fails_makes_room_for_another(world: ClusterWorld) -> None:
    failing = controller_of(world)
    failing.disk_fails("flush", CLUSTER_METADATA)
    client = world.client(another(world, failing).number)
    number = client.post(creation())
    world.run_until(lambda: failing.has_stopped, 1_000.0)
    world.run_until(lambda: number in client.answers, SESSION_MS)
    assert outcome(client, number) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), "the others may have it already"
    assert all(NEW in member.broker.image.topics for member in world.alive)


def test_a_metadata_log_that_fails_in_the_middle_of_a_snapshot_keeps_nobody_awake() -> None:
    """The snapshot will never be finished. A node alone stays, to serve what it has, and sleeps in between."""
    world = ClusterWorld(1)
    member, now = world[0], world.now
    image, quorum = member.broker.image, member.broker.quorum
    quorum.take_snapshot(records_of(image), image.offset, image.epoch, now)
    member.node.cluster.metadata.fail("input/output error", now)
    for _ in range(3):
        effects = member.node.step(Woke(), now)
    assert all(effect.at_ms > now.monotonic_ms for effect in effects if isinstance(effect, Wake))


def test_a_full_disk_when_the_quorums_log_was_cut_is_told_and_not_a_crash(world: ClusterWorld) -> None:
    """The checkpoint says that more is safe than there is. Who cannot lower it must not go on, and must say why."""
    old = controller_of(world)
    world.isolate(old.number)
    world.client(old.number).post(creation())
    world.run(20.0)
    old.disk_fails("write_whole", checkpoint.RECOVERY_POINTS, full=True)
    world.run_until(lambda: any(each.broker.controller is not None for each in world.alive if each is not old))
    world.heal()
    world.run_until(lambda: old.has_stopped, SESSION_MS)
    assert any(isinstance(fact, MetadataFailed) and "no space" in str(fact) for fact in old.told)
    assert not has_marker(old)


def test_a_silent_broker_is_fenced_once_there_is_room_to_write_it_down(four: ClusterWorld) -> None:
    """The disk is full when its session ends. The controller stays the controller, so nobody else decides it."""
    controller = controller_of(four)
    controller.disk_fails("append", CLUSTER_METADATA, full=True)
    four[3].is_frozen = True
    four.run(SESSION_MS)
    assert not controller.broker.image.brokers[3].fenced
    controller.disk_recovers()
    four.run_until(lambda: controller.broker.image.brokers[3].fenced, SESSION_MS)
    assert four.controller() is controller
    assert not any(isinstance(fact, MetadataFailed) for fact in controller.told), "it did not fail, it is full"


# Two lives with one number.


def test_a_life_that_was_replaced_ends_when_it_hears_of_it(four: ClusterWorld) -> None:
    """A machine hangs and is replaced by another with its number and an empty disk; then it goes on."""
    old = four[3]
    old.is_frozen = True
    four.run(5_000.0)
    four.replace(3)
    four.run_until(lambda: four[3].is_serving, SESSION_MS)
    old.thaw()
    four.run_until(lambda: old.has_stopped, SESSION_MS)
    assert not has_marker(old), "its disk is nobody's any more"
    four.run(SESSION_MS)
    assert four[3].is_alive and not four[0].broker.image.brokers[3].fenced


def test_a_record_is_not_acknowledged_because_a_replaced_life_has_it(four: ClusterWorld) -> None:
    """It fetches in the name of the replica. What it holds is on a disk that is not the replica's."""
    create(four, factor=4)
    old = four[3]
    old.is_frozen = True
    four.run(5_000.0)
    new = four.replace(3)
    four.run_until(lambda: new.is_serving and 3 in state(four).isr, 2 * SESSION_MS)
    leader = next(number for number in (0, 1, 2) if number == state(four).leader)
    old.thaw()
    four.run(1_000.0)
    new.is_frozen = True
    answer = produce(four, leader, b"needs the new one")
    replica = new.broker.partitions.get(TOPIC, 0)
    assert replica is not None and replica.log.end_offset == 0
    assert answer.error_code != ErrorCode.NONE or 3 not in state(four, leader).isr


# Stopped before the logs are open.


def test_after_a_crash_a_life_that_opened_nothing_does_not_end_cleanly(world: ClusterWorld) -> None:
    """Else the next one believes the torn tails that the crash left."""
    create(world)
    assert produce(world, state(world).leader, b"zero").error_code == ErrorCode.NONE
    crashed = another(world, controller_of(world))
    crashed.lose_power()
    world.run(2_000.0)
    crashed.start()
    world.run_until(lambda: crashed.node.cluster.membership.epoch >= 0)
    assert not crashed.broker.is_open
    crashed.begin_to_stop()
    world.run_until(lambda: crashed.has_stopped)
    assert not has_marker(crashed)
    crashed.start()
    world.run_until(lambda: crashed.is_serving)
    opened = [fact for fact in crashed.told if isinstance(fact, LogsOpened)][-1]
    assert not opened.clean


def stopped_cluster(world: ClusterWorld) -> Member:
    """Everybody has stopped; one of them led a partition of which the first three records were deleted."""
    create(world, factor=1)
    leader = world[state(world).leader]
    for number in range(5):
        assert produce(world, leader.number, b"%d" % number).error_code == ErrorCode.NONE
    (deleted,) = world.client(leader.number).ask(delete_records(TOPIC, 3)).topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.NONE, 3)
    for member in world.members.values():
        member.begin_to_stop()
        world.run_until(lambda member=member: member.has_stopped)  # type: ignore[misc]
        assert has_marker(member)
    return leader


def started_in_vain(world: ClusterWorld, member: Member) -> None:
    """Without a majority nobody says which logs are its own."""
    member.start()
    world.run(2_000.0)
    assert not member.broker.is_open
    member.begin_to_stop()
    world.run_until(lambda: member.has_stopped)


def test_a_life_that_began_cleanly_and_opened_nothing_ends_as_it_began(world: ClusterWorld) -> None:
    """Else everything is recovered for nothing, and the broker gives up its place among the eligible leaders."""
    member = stopped_cluster(world)
    marker = member.disk.read_whole(checkpoint.CLEAN_SHUTDOWN)
    started_in_vain(world, member)
    assert has_marker(member)
    assert member.disk.read_whole(checkpoint.CLEAN_SHUTDOWN) == marker


def test_a_node_that_is_stopped_before_its_logs_are_open_keeps_the_checkpoints(world: ClusterWorld) -> None:
    member, partition = stopped_cluster(world), TopicPartition(TOPIC, 0)
    files = (checkpoint.RECOVERY_POINTS, checkpoint.LOG_START_OFFSETS, checkpoint.HIGH_WATERMARKS)
    before = {file: checkpointed(member, file).get(partition) for file in files}
    assert before[checkpoint.LOG_START_OFFSETS] == 3
    started_in_vain(world, member)
    assert {file: checkpointed(member, file).get(partition) for file in files} == before


def test_deleted_records_do_not_come_back_when_a_node_was_started_in_vain(world: ClusterWorld) -> None:
    member = stopped_cluster(world)
    started_in_vain(world, member)
    for each in world.members.values():
        each.start()
    world.run_until(lambda: all(each.is_serving for each in world.members.values()), 20_000.0)
    replica = member.broker.partitions.get(TOPIC, 0)
    assert replica is not None
    assert (replica.log.start_offset, replica.log.end_offset) == (3, 5)


# A controller that hangs, or loses its office.


def test_what_was_asked_of_a_controller_that_hangs_is_asked_of_the_next_one(world: ClusterWorld) -> None:
    old = controller_of(world)
    client = world.client(another(world, old).number)
    old.is_frozen = True
    number = client.post(creation())
    world.run_until(lambda: world.controller() is not None)
    world.run_until(lambda: number in client.answers or not client.is_open, 1_000.0)
    assert outcome(client, number) == ErrorCode.NONE


def test_producer_ids_come_from_the_next_controller_when_one_hangs(four: ClusterWorld) -> None:
    """The client is told to try again, as soon as that makes sense."""
    client, request = four.client(3), InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    controller_of(four).is_frozen = True
    number = client.post(request)
    four.run_until(lambda: four.controller() is not None)
    four.run_until(lambda: number in client.answers, 1_000.0)
    assert client.answers[number].error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    four.run(100.0)
    assert client.ask(request, within_ms=1_000.0).error_code == ErrorCode.NONE


def test_a_new_controller_hears_at_once_of_every_broker_though_the_old_one_hangs(four: ClusterWorld) -> None:
    """Before it has heard of them it cannot tell the living from the dead."""
    heard: set[int] = set()

    def noting(request: BrokerHeartbeatRequest, call: Call) -> Answer:
        if call.broker.controller is not None:
            heard.add(request.broker_id)
        return broker_heartbeat.handle(request, call)

    old = controller_of(four)
    for member in four.alive:
        member.answers_with(BROKER_HEARTBEAT, noting)
    old.is_frozen = True
    heard.clear()
    four.run_until(lambda: four.controller() is not None)
    others = {member.number for member in four.members.values() if member not in (old, four.controller())}
    four.run_until(lambda: heard >= others, 200.0)


def nothing_commits(world: ClusterWorld) -> None:
    """The controller does not reach the others of its quorum any more, until they choose another."""
    controller = controller_of(world)
    for other in (0, 1, 2):
        if other != controller.number:
            world.cut(controller.number, other)


def test_a_request_that_is_overdue_costs_those_before_it_nothing(four: ClusterWorld) -> None:
    """They share a connection to the controller. If it were closed, the others would be sent a second time, and find
    what their first try left."""
    nothing_commits(four)
    patient, hasty = four.client(3), four.client(3)
    first, second = patient.post(creation("patient")), hasty.post(creation("hasty", 1_000))
    four.run_until(lambda: second in hasty.answers or not hasty.is_open, 2_000.0)
    four.run_until(lambda: first in patient.answers or not patient.is_open, 30_000.0)
    assert outcome(patient, first) == ErrorCode.NONE
    assert "patient" in four[3].broker.image.topics


def test_a_client_whose_request_is_overdue_at_the_controller_hears_it_in_its_own_words(four: ClusterWorld) -> None:
    """A connection that ends does not say whether it makes sense to ask again."""
    nothing_commits(four)
    client = four.client(3)
    number = client.post(creation(timeout_ms=1_000))
    four.run_until(lambda: number in client.answers or not client.is_open, 2_000.0)
    assert outcome(client, number) == ErrorCode.REQUEST_TIMED_OUT


def test_what_a_controller_could_not_finish_in_office_is_asked_of_the_next_one(four: ClusterWorld) -> None:
    """Its client would not try again by itself: REQUEST_TIMED_OUT may mean that it was done."""
    nothing_commits(four)
    client = four.client(3)
    number = client.post(creation())
    four.run_until(lambda: number in client.answers or not client.is_open, 20_000.0)
    assert outcome(client, number) == ErrorCode.NONE
    assert NEW in four[3].broker.image.topics


# Envelopes.


def enveloped(request: object) -> EnvelopeRequest:
    api = api_of(request)
    pieces = encoded_request(api, api.max_version, 7, "client", request)
    return EnvelopeRequest(
        request_data=b"".join(map(bytes, pieces))[4:], request_principal=b"", client_host_address=b""
    )


def unencodable(request: object, call: Call) -> Answer:
    return Reply(CreateTopicsResponse(topics=[3]))  # type: ignore[list-item]


def failing_later(request: object, call: Call) -> Answer:
    def then(now: Now, in_time: bool) -> object:
        raise RuntimeError("a mistake of ours")

    return Later(Applied(call.broker.image.offset + 1_000), call.now.monotonic_ms + 50.0, then)


@pytest.mark.parametrize("mistake", [unencodable, failing_later])
def test_a_mistake_while_an_envelope_is_answered_is_told_and_costs_nobody_the_controller(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[object, Call], Answer]
) -> None:
    """Who passed it on would find the next controller, and end that one too."""
    monkeypatch.setattr(create_topics, "handle", mistake)
    controller = controller_of(world)
    answer = world.client(controller.number).ask(enveloped(creation()))
    assert (answer.error_code, answer.response_data) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert any(isinstance(fact, HandlerFailed) for fact in controller.told)


def test_a_client_whose_request_was_passed_on_to_a_mistake_is_the_only_one_to_suffer(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = controller_of(world)
    client = world.client(another(world, controller).number)
    monkeypatch.setattr(create_topics, "handle", forwarding_or(unencodable))
    client.post(creation())
    world.run_until(lambda: not client.is_open, 1_000.0)
    monkeypatch.undo()
    assert world.controller() is controller
    create(world, another(world, controller).number)


def forwarding_or(mistake: Callable[[object, Call], Answer]) -> Callable[[object, Call], Answer]:
    """What is wrong shows in the controller only."""

    def handle(request: object, call: Call) -> Answer:
        return Elsewhere() if call.broker.controller is None else mistake(request, call)

    return handle


def test_only_what_brokers_pass_on_is_taken_out_of_an_envelope(world: ClusterWorld) -> None:
    """A fetch in an envelope would read the disk where nobody expects it; a vote would come from anywhere."""
    client = world.client(controller_of(world).number)
    answer = client.ask(enveloped(MetadataRequest(topics=[])))
    assert (answer.error_code, answer.response_data) == (ErrorCode.INVALID_REQUEST, None)
    assert client.ask(enveloped(creation())).error_code == ErrorCode.NONE, "and it goes on"


def test_what_is_garbage_in_an_envelope_is_called_so(world: ClusterWorld) -> None:
    client = world.client(controller_of(world).number)
    answer = client.ask(EnvelopeRequest(request_data=b"\0\1garbage", request_principal=b"", client_host_address=b""))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


# Answers of others.


def test_a_node_that_is_refused_for_a_reason_it_does_not_know_says_so_and_tries_again(four: ClusterWorld) -> None:
    """The controller may be newer than we are."""
    controller, node = controller_of(four), four[3]

    def refusing(request: object, call: Call) -> Answer:
        return Reply(BrokerRegistrationResponse(error_code=OF_THE_FUTURE))

    node.kill()
    controller.answers_with(BROKER_REGISTRATION, refusing)
    node.start()
    four.run(1_000.0)
    assert RegistrationRefused("UNKNOWN_SERVER_ERROR") in node.told
    controller.answers_as_ever()
    four.run_until(lambda: node.is_serving, SESSION_MS)


def test_a_follower_survives_an_error_of_its_leader_that_it_does_not_know(world: ClusterWorld) -> None:
    create(world)
    leader = world[state(world).leader]

    def erring(request: FetchRequest, call: Call) -> Answer:
        answer = fetch.handle(request, call)
        if isinstance(answer, Reply) and isinstance(answer.response, FetchResponse):
            for partition in (each for topic in answer.response.responses for each in topic.partitions):
                partition.error_code = OF_THE_FUTURE
        return answer

    leader.answers_with(FETCH, erring)
    world.run(2_000.0)
    leader.answers_as_ever()
    told = [fact for member in world.members.values() for fact in member.told]
    assert not any(isinstance(fact, AnswerNotUnderstood) for fact in told), "as if it were a known one"
    assert produce(world, leader.number, b"zero").error_code == ErrorCode.NONE


def test_a_leader_survives_an_error_of_the_controller_that_it_does_not_know(four: ClusterWorld) -> None:
    """It asks to be rid of a follower that is gone, and then asks again."""
    create(four, partitions=4, factor=4)
    controller = controller_of(four)
    index = next(index for index in range(4) if state(four, partition=index).leader not in (controller.number, 3))
    leader = four[state(four, partition=index).leader]

    def erring(request: AlterPartitionRequest, call: Call) -> Answer:
        topics = [
            AlteredTopic(
                topic_id=topic.topic_id,
                partitions=[
                    AlteredPartition(partition_index=each.partition_index, error_code=OF_THE_FUTURE)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return Reply(AlterPartitionResponse(topics=topics))

    four[3].kill()
    four.run_until(lambda: 3 not in state(four, leader.number, index).isr)
    controller.answers_with(ALTER_PARTITION, erring)
    four[3].start()
    four.run_until(lambda: controller.was_asked(ALTER_PARTITION) >= 2, SESSION_MS)
    controller.answers_as_ever()
    four.run_until(lambda: 3 in state(four, leader.number, index).isr, 2 * SESSION_MS)


def test_a_client_hears_that_producer_ids_are_refused_for_a_reason_that_nobody_knows(four: ClusterWorld) -> None:
    def refusing(request: object, call: Call) -> Answer:
        return Reply(AllocateProducerIdsResponse(error_code=OF_THE_FUTURE))

    controller_of(four).answers_with(ALLOCATE_PRODUCER_IDS, refusing)
    answer = four.client(3).ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
    assert answer.error_code not in (ErrorCode.NONE, OF_THE_FUTURE)


def test_metadata_is_told_at_once_again_when_the_network_swallows_the_second_call(four: ClusterWorld) -> None:
    """Whether it is dead is not to be found out. A kernel tries for two minutes, and nobody else may wait so long."""
    asking, suspect = four[3], another(four, controller_of(four))
    create(four, partitions=8, factor=2)
    four.run(500.0)
    four.swallow_dials(asking.number, suspect.number)
    broken = [number for number, link in asking.links.items() if number < 0 and link.leads_to(suspect)]
    assert broken, "it follows some partition of it"
    for number in broken:
        four.break_link(asking.links[number], suspect)
    four.run(2 * four.latency_ms)
    assert asking.broker.absent.suspects == {suspect.number}
    four.run(2_000.0)
    began_ms = four.now_ms
    four.client(asking.number).ask(MetadataRequest(topics=[]))
    assert four.now_ms - began_ms < 1.0


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR, OF_THE_FUTURE])
def test_a_heartbeat_that_failed_is_no_reason_to_register_again(four: ClusterWorld, code: int) -> None:
    """The controller has a trouble of its own. It knows this life of ours as well as before."""
    controller, node = controller_of(four), four[3]
    epoch = node.node.cluster.membership.epoch

    def failing(request: object, call: Call) -> Answer:
        return Reply(BrokerHeartbeatResponse(error_code=code))

    controller.answers_with(BROKER_HEARTBEAT, failing)
    four.run_until(lambda: controller.was_asked(BROKER_HEARTBEAT) > 8, SESSION_MS)
    controller.answers_as_ever()
    four.run(2_000.0)
    assert [type(fact) for fact in node.told].count(Registered) == 1
    assert node.node.cluster.membership.epoch == epoch


def test_a_broker_that_the_controller_no_longer_knows_registers_again(four: ClusterWorld) -> None:
    controller, node = controller_of(four), four[3]
    four.client(controller.number).ask(UnregisterBrokerRequest(broker_id=3))
    four.run_until(lambda: [type(fact) for fact in node.told].count(Registered) == 2, SESSION_MS)


def test_a_node_stops_cleanly_though_the_controllers_disk_is_full(four: ClusterWorld) -> None:
    """What it led stays with it, and nothing of it has to be recovered."""
    create(four)
    controller, node = controller_of(four), four[3]
    controller.disk_fails("append", CLUSTER_METADATA, full=True)
    node.begin_to_stop()
    four.run_until(lambda: node.has_stopped)
    assert has_marker(node)


# Addresses.


def test_a_node_starts_again_after_the_quorum_was_given_another_address(world: ClusterWorld) -> None:
    """The cluster's id was made of the addresses once. It does not change when they do."""
    node = world[2]
    cluster_id = node.broker.cluster_id
    node.begin_to_stop()
    world.run_until(lambda: node.has_stopped)
    node.overrides["controller.quorum.voters"] += ",3@127.0.0.1:9003"
    node.start()
    world.run_until(lambda: node.is_serving)
    assert node.broker.cluster_id == cluster_id


# The world itself.


def test_what_was_sent_before_a_connection_was_closed_arrives(world: ClusterWorld) -> None:
    """A node that answers and closes in one step is heard to the end."""
    client = world.client(0)
    number = client.post(MetadataRequest(topics=[]))
    world.run(world.latency_ms)
    world[0].kill()
    world.run_until(lambda: not client.is_open)
    assert number in client.answers


def test_when_all_processes_were_killed_those_that_return_go_on_without_the_last(world: ClusterWorld) -> None:
    """Their machines stayed up, so nothing that they wrote is missing: nobody has to wait for who led last."""
    create(world, partitions=3)
    for index in range(3):
        assert produce(world, state(world, partition=index).leader, b"kept", partition=index).error_code == 0
    for member in world.members.values():
        member.kill()
    for number in (0, 1):
        world[number].start()
    world.run_until(lambda: world[0].is_serving and world[1].is_serving, SESSION_MS)
    world.run_until(lambda: all(state(world, 0, index).leader in (0, 1) for index in range(3)), SESSION_MS)


def test_a_broker_of_whom_the_image_does_not_know_this_life_waits_without_turning(world: ClusterWorld) -> None:
    """Nobody would believe what it says of its replicas. It goes on when the image has caught up with it."""
    create(world)
    leader = world[state(world).leader]
    follower = another(world, leader)
    known = world[0].broker.image.brokers[follower.number].epoch
    follower.broker.epoch = known - 1
    world.run(2_000.0)
    assert follower.broker.replication.next_deadline_ms is None or (
        follower.broker.replication.next_deadline_ms > world.now_ms
    )
