"""Connections to other nodes: dialled when needed, answers to whoever asked, and evidence that a process is dead."""

from random import Random
from typing import Any

import pytest

from klamm.facts import Fact
from klamm.ids import Now
from klamm.node.effects import Close, Dial, Effect, Send
from klamm.node.facts import AnswerNotUnderstood
from klamm.node.peers import DIALLING_MS, GIVEN_UP_MS, REDIAL_DEAD_MS, REDIAL_MS, Peer, Peers, Purpose, Then
from klamm.wire.apis import API_BY_KEY, BROKER_HEARTBEAT
from klamm.wire.frames import encoded_response
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

OTHER = Peer(2, "127.0.0.1", 9002)
MOVED = Peer(2, "127.0.0.1", 9999)


class Talking:
    """Peers of node 1, a clock, and what was answered."""

    def __init__(self) -> None:
        self.now = Now(1_000.0, 0)
        self.answers: list[Any] = []
        self.told: list[Fact] = []
        self.asked_here: list[object] = []
        self.peers = Peers(1, self._ask_here, Random(1), self.told.append)

    def _ask_here(self, api: int, version: int, request: object, deadline_ms: float, then: Any, now: Now) -> None:
        self.asked_here.append(request)

    def ask(
        self,
        broker_id: int = 7,
        peer: Peer = OTHER,
        purpose: Purpose = Purpose.MEMBERSHIP,
        timeout_ms: float = 500.0,
        then: Then | None = None,
    ) -> list[Effect]:
        request = BrokerHeartbeatRequest(broker_id=broker_id)
        self.peers.ask(peer, purpose, BROKER_HEARTBEAT, 1, request, timeout_ms, then or self._then, self.now)
        return self.peers.take_effects()

    def wait(self, milliseconds: float) -> list[Effect]:
        self.now = Now(self.now.monotonic_ms + milliseconds, 0)
        self.peers.tick(self.now)
        return self.peers.take_effects()

    def _then(self, answer: Any, now: Now) -> None:
        self.answers.append(answer)

    def answer(self, connection: int, number: int, **fields: Any) -> None:
        pieces = encoded_response(API_BY_KEY[BROKER_HEARTBEAT], 1, number, BrokerHeartbeatResponse(**fields))
        self.peers.received(connection, [memoryview(b"".join(map(bytes, pieces)))[4:]], self.now)


@pytest.fixture
def talking() -> Talking:
    return Talking()


def dialled(effects: list[Effect]) -> Dial:
    (dial,) = (effect for effect in effects if isinstance(effect, Dial))
    return dial


def test_a_node_is_dialled_when_it_is_first_asked_and_hears_it_once_it_is_there(talking: Talking) -> None:
    effects = talking.ask()
    assert effects == [Dial(-1, "127.0.0.1", 9002)]
    talking.peers.opened(-1)
    (send,) = talking.peers.take_effects()
    assert isinstance(send, Send) and send.connection == -1
    talking.answer(-1, 0, is_fenced=False)
    assert talking.answers == [BrokerHeartbeatResponse(is_fenced=False)]


def test_a_second_question_takes_the_same_connection(talking: Talking) -> None:
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.take_effects()
    (send,) = talking.ask(8)
    assert isinstance(send, Send) and send.connection == -1


def test_each_purpose_has_a_connection_of_its_own(talking: Talking) -> None:
    first = dialled(talking.ask(purpose=Purpose.METADATA))
    second = dialled(talking.ask(purpose=Purpose.MEMBERSHIP))
    assert first.connection != second.connection


def test_to_ask_oneself_takes_no_connection(talking: Talking) -> None:
    assert talking.ask(peer=Peer(1, "127.0.0.1", 9001)) == []
    assert talking.asked_here == [BrokerHeartbeatRequest(broker_id=7)]


def test_whoever_asked_hears_that_nobody_listens(talking: Talking) -> None:
    talking.ask()
    talking.peers.refused(-1, True, talking.now)
    assert talking.answers == [None]


def test_a_broken_connection_loses_all_that_was_asked_and_is_looked_into(talking: Talking) -> None:
    """Dialled again at once: if nobody listens there any more, the process is dead for certain."""
    talking.ask()
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.take_effects()
    talking.peers.closed(-1, talking.now)
    assert talking.answers == [None, None]
    again = dialled(talking.peers.take_effects())
    talking.peers.refused(again.connection, True, talking.now)
    assert talking.peers.take_gone() == [2]
    assert talking.peers.take_gone() == []


def test_a_process_that_answers_the_second_call_is_alive(talking: Talking) -> None:
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.closed(-1, talking.now)
    again = dialled(talking.peers.take_effects())
    talking.peers.opened(again.connection)
    assert talking.peers.take_gone() == []
    assert Close(again.connection) in talking.peers.take_effects(), "it was only a question"


def test_a_second_call_into_the_gap_of_a_death_is_not_the_last_word(talking: Talking) -> None:
    """A process that is killed closes its connections before its listening socket. Who calls in between is taken by the
    dying listener, or reset; the next one who finds nobody there, whatever it was for, says the truth."""
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.closed(-1, talking.now)
    into_the_gap = dialled(talking.peers.take_effects())
    talking.peers.opened(into_the_gap.connection)
    talking.peers.take_effects()
    assert talking.peers.take_gone() == []
    again = dialled(talking.ask())
    talking.peers.refused(again.connection, True, talking.now)
    assert talking.peers.take_gone() == [2]
    once_more = dialled(talking.ask())
    talking.peers.refused(once_more.connection, True, talking.now)
    assert talking.peers.take_gone() == [], "told once"


def test_an_address_that_cannot_be_reached_is_no_evidence(talking: Talking) -> None:
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.closed(-1, talking.now)
    again = dialled(talking.peers.take_effects())
    talking.peers.refused(again.connection, False, talking.now)
    assert talking.peers.take_gone() == []


def test_a_watched_node_that_dies_is_gone_and_one_that_was_never_there_too(talking: Talking) -> None:
    talking.peers.watch([OTHER, Peer(3, "127.0.0.1", 9003)], talking.now)
    first, second = (effect for effect in talking.peers.take_effects() if isinstance(effect, Dial))
    talking.peers.opened(first.connection)
    talking.peers.refused(second.connection, True, talking.now)
    assert talking.peers.take_gone() == [3]
    talking.peers.closed(first.connection, talking.now)
    again = dialled(talking.peers.take_effects())
    talking.peers.refused(again.connection, True, talking.now)
    assert talking.peers.take_gone() == [2]


def test_a_watched_node_is_called_again_after_a_while(talking: Talking) -> None:
    talking.peers.watch([OTHER], talking.now)
    talking.peers.refused(dialled(talking.peers.take_effects()).connection, False, talking.now)
    for pause_ms in (10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, REDIAL_MS, REDIAL_MS):
        assert talking.peers.next_deadline_ms() == talking.now.monotonic_ms + pause_ms
        talking.now = Now(talking.now.monotonic_ms + pause_ms, 0)
        talking.peers.tick(talking.now)
        talking.peers.refused(dialled(talking.peers.take_effects()).connection, False, talking.now)


def test_a_watched_node_that_died_is_looked_for_again_soon(talking: Talking) -> None:
    """Whoever was told may not have believed it: right after a registration the death is taken for the old life's."""
    talking.peers.watch([OTHER], talking.now)
    talking.peers.refused(dialled(talking.peers.take_effects()).connection, True, talking.now)
    assert talking.peers.next_deadline_ms() == talking.now.monotonic_ms + REDIAL_DEAD_MS


def test_a_node_is_suspected_until_the_second_call_has_ended(talking: Talking) -> None:
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.closed(-1, talking.now)
    assert talking.peers.suspects == {2}
    talking.peers.opened(dialled(talking.peers.take_effects()).connection)
    assert talking.peers.suspects == set()


def test_who_is_no_longer_watched_is_let_go(talking: Talking) -> None:
    talking.peers.watch([OTHER], talking.now)
    watching = dialled(talking.peers.take_effects())
    talking.peers.opened(watching.connection)
    talking.peers.watch([], talking.now)
    assert Close(watching.connection) in talking.peers.take_effects()
    talking.peers.closed(watching.connection, talking.now)
    assert talking.peers.take_gone() == []


def test_an_answer_that_is_overdue_ends_the_connection(talking: Talking) -> None:
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.take_effects()
    assert talking.peers.next_deadline_ms() == 1_500.0
    talking.now = Now(1_500.0, 0)
    talking.peers.tick(talking.now)
    assert talking.answers == [None]
    assert Close(-1) in talking.peers.take_effects()
    talking.answer(-1, 0)
    assert talking.answers == [None], "and a late answer is nobody's"


def test_a_node_that_moved_is_dialled_at_its_new_address(talking: Talking) -> None:
    talking.ask()
    effects = talking.ask(peer=MOVED)
    assert Close(-1) in effects
    assert dialled(effects).port == 9999
    assert talking.answers == [None], "what was asked of the old address is lost"


def test_an_answer_to_another_question_ends_the_connection(talking: Talking) -> None:
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.take_effects()
    talking.answer(-1, 77)
    assert talking.answers == [None]
    assert Close(-1) in talking.peers.take_effects()
    assert [type(fact) for fact in talking.told] == [AnswerNotUnderstood]


def test_who_has_waited_long_enough_is_told_and_those_behind_wait_on(talking: Talking) -> None:
    """They share a connection. If one impatient question closed it, all others would be asked, and carried out, a
    second time."""
    talking.ask()
    talking.ask(8, timeout_ms=5_000.0)
    talking.peers.opened(-1)
    talking.peers.take_effects()
    assert talking.wait(500.0) == []
    assert talking.answers == [None]
    talking.answer(-1, 0, is_fenced=True)
    assert talking.answers == [None], "a late answer is nobody's"
    talking.answer(-1, 1, is_fenced=False)
    assert talking.answers == [None, BrokerHeartbeatResponse(is_fenced=False)]


def test_a_connection_on_which_an_answer_is_much_overdue_is_closed_with_all_that_waits_behind_it(
    talking: Talking,
) -> None:
    talking.ask()
    talking.ask(8, timeout_ms=60_000.0)
    talking.peers.opened(-1)
    talking.peers.take_effects()
    talking.wait(500.0)
    assert talking.peers.next_deadline_ms() == talking.now.monotonic_ms + GIVEN_UP_MS
    assert Close(-1) in talking.wait(GIVEN_UP_MS)
    assert talking.answers == [None, None]


def test_what_was_asked_of_a_node_for_some_purposes_can_be_given_up(talking: Talking) -> None:
    """It hangs, and another one can be asked. What it was asked for other purposes only it can answer."""
    given_up = dialled(talking.ask(purpose=Purpose.FORWARD)).connection
    kept = dialled(talking.ask(purpose=Purpose.REPLICATION)).connection
    for connection in (given_up, kept):
        talking.peers.opened(connection)
    talking.peers.take_effects()
    talking.peers.give_up(2, (Purpose.MEMBERSHIP, Purpose.FORWARD), talking.now)
    assert talking.answers == [None]
    assert talking.peers.take_effects() == [Close(given_up)]
    talking.answer(kept, 0)
    assert talking.answers == [None, BrokerHeartbeatResponse()]


def test_a_second_call_that_is_neither_taken_nor_refused_ends_and_is_no_evidence(talking: Talking) -> None:
    """The network swallows it. A kernel tries for two minutes, and so long the node would be suspected."""
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.closed(-1, talking.now)
    again = dialled(talking.peers.take_effects())
    assert talking.peers.suspects == {2}
    assert talking.peers.next_deadline_ms() == talking.now.monotonic_ms + DIALLING_MS
    assert talking.wait(DIALLING_MS) == [Close(again.connection)]
    assert talking.peers.suspects == set() and talking.peers.take_gone() == []
    assert talking.peers.next_deadline_ms() is None


def test_a_watched_node_whose_call_is_swallowed_is_called_again(talking: Talking) -> None:
    talking.peers.watch([OTHER], talking.now)
    swallowed = dialled(talking.peers.take_effects())
    assert talking.wait(DIALLING_MS) == [Close(swallowed.connection)]
    assert dialled(talking.wait(REDIAL_MS)).port == OTHER.port


def test_a_connection_to_an_old_address_says_nothing_about_a_node_that_has_moved(talking: Talking) -> None:
    """Nobody listens there any more, of course. Who believed it would fence a healthy broker."""
    talking.ask()
    talking.peers.opened(-1)
    talking.peers.watch([MOVED], talking.now)
    watching = dialled(talking.peers.take_effects())
    talking.peers.opened(watching.connection)
    talking.peers.closed(-1, talking.now)
    assert talking.answers == [None], "what was asked there is lost all the same"
    assert talking.peers.take_effects() == []
    assert talking.peers.suspects == set() and talking.peers.take_gone() == []


def test_an_answer_that_nobody_can_make_sense_of_ends_the_connection_and_not_the_node(talking: Talking) -> None:
    """It is right in form. The other node may be newer than we are, or mistaken."""

    def puzzled(answer: Any, now: Now) -> None:
        raise ValueError("4711 is no error code")

    talking.ask(then=puzzled)
    talking.ask(8, then=lambda answer, now: talking.answers.append(answer))
    talking.peers.opened(-1)
    talking.peers.take_effects()
    talking.answer(-1, 0)
    assert talking.answers == [None]
    assert Close(-1) in talking.peers.take_effects()
    assert [type(fact) for fact in talking.told] == [AnswerNotUnderstood]


def test_addresses_that_strangers_advertise_are_not_remembered(talking: Talking) -> None:
    for number in range(100):
        stranger = Peer(1_000 + number, "127.0.0.1", 20_000 + number)
        (dial,) = talking.ask(peer=stranger, purpose=Purpose.NEWCOMER)
        assert isinstance(dial, Dial)
        talking.peers.opened(dial.connection)
        talking.answer(dial.connection, 0)
        talking.peers.hang_up(stranger.node_id, Purpose.NEWCOMER)
        talking.peers.take_effects()
    assert len(talking.answers) == 100
    assert not (talking.peers._reached or talking.peers._channels or talking.peers._pauses_ms)
