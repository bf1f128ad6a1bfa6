"""Several nodes in memory when the controller hangs, loses its office, or makes a mistake: what was asked of it is not
lost, and costs nobody else anything. Each story was once told by a reviewer, with another end."""

from collections.abc import Callable
from functools import partial

import pytest

from klamm.broker.answer import Answer, Applied, Elsewhere, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.handlers import broker_heartbeat, create_topics
from klamm.ids import Now
from klamm.node.cluster import Cluster
from klamm.node.facts import HandlerFailed
from klamm.node.peers import Purpose
from klamm.wire.apis import (
    BROKER_HEARTBEAT,
)
from klamm.wire.frames import encoded_request
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from klamm.wire.messages.create_topics import CreateTopicsResponse
from klamm.wire.messages.envelope import EnvelopeRequest
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.node.cluster_world import ClusterWorld, Owner
from tests.node.test_cluster import create
from tests.node.troubled import NEW, another, controller_of, creation, outcome
from tests.node.world import api_of

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


def test_a_controller_that_removes_itself_is_heard_out(world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says on one connection that it resigns, and on another that it did as it was asked. The second may come later,
    and the next controller, if asked, would know no such voter."""
    old = controller_of(world)
    other = another(world, old)
    client = world.client(other.number)
    deliver = world.deliver

    def slowly(receiver: Owner, number: int, frames: list[bytes]) -> None:
        channel = other.node.cluster.peers._by_connection.get(number)
        is_late = receiver is other and channel is not None and channel.purpose is Purpose.FORWARD
        world.after(100.0 if is_late else 0.0, partial(deliver, receiver, number, frames))

    monkeypatch.setattr(world, "deliver", slowly)
    removal = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=old.number, voter_directory_id=old.broker.quorum.voters.get(old.number).directory_id
    )
    assert client.ask(removal, within_ms=1_000.0).error_code == ErrorCode.NONE
    assert world.controller() not in (None, old)


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


def test_a_controller_that_does_not_serve_yet_lets_others_register() -> None:
    """It may have to look through its logs for minutes. Whom it has to ask who speaks, it goes on to hear."""
    world = ClusterWorld(3)
    world.run_until(lambda: all(member.is_serving for member in world.members.values()))
    for number in list(world.members):
        world[number].kill()
    open_logs = Cluster._open_when_caught_up

    def open_unless_controller(self: Cluster, now: Now) -> None:
        if self.metadata.controller_peer() is not None and self._broker.controller is None:
            open_logs(self, now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "_open_when_caught_up", open_unless_controller)
        for number in list(world.members):
            world[number].start()
        took_ms = world.run_until(lambda: sum(member.is_serving for member in world.members.values()) == 2)
    assert took_ms < 1_000.0, "of simulated time"
