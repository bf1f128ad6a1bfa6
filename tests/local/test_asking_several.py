"""Several brokers to ask: the first that answers counts, and one that stands still holds nobody up."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from klamm.cli import main
from klamm.local import asking_several
from klamm.local.asking import METADATA, Address, Conversation, NoAnswer, NobodyHere
from klamm.local.asking_several import each_answer, first_answer
from klamm.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.cli.fake_broker import FakeBroker

NOBODY = Address("127.0.0.1", 1)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as started:
        started.answers = {METADATA: lambda request: MetadataResponse(cluster_id="ours")}
        yield started


@pytest.fixture
def still() -> Iterator[list[Address]]:
    """Three that take connections, as processes do that stand still, and say nothing."""
    with ExitStack() as open_ones:
        listening = [open_ones.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        yield [Address(*each.getsockname()) for each in listening]


@pytest.fixture
def paused(still: list[Address]) -> Address:
    return still[0]


def cluster_id(broker: Conversation) -> str:
    return str(broker.ask(METADATA, 12, MetadataRequest(topics=[])).cluster_id)


def test_one_that_stands_still_is_passed_over(
    broker: FakeBroker, paused: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 0.05)
    silent: list[Address] = []
    began = time.monotonic()
    answered = first_answer([NOBODY, paused, broker.address], 60.0, cluster_id, silent.append)
    assert answered == (broker.address, "ours") and silent == [paused]
    assert time.monotonic() < began + 30


def test_any_number_that_stand_still_is_one_wait(
    broker: FakeBroker, still: list[Address], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 0.05)
    waited_for: list[Address] = []
    assert first_answer([*still, broker.address], 60.0, cluster_id, waited_for.append)[0] == broker.address
    assert waited_for == still[:1], "the others were asked beside it"


def test_each_is_asked_while_the_others_are(still: list[Address]) -> None:
    """Each answers when all have been asked: one after the other, nobody would."""
    all_asked = threading.Barrier(3)

    def who(key: int, _: Conversation) -> int:
        all_asked.wait(60)
        return key

    assert each_answer(dict(enumerate(still)), 60.0, who, 60.0) == {0: 0, 1: 1, 2: 2}


def test_who_is_silent_while_others_answer_is_waited_for_a_moment(broker: FakeBroker, still: list[Address]) -> None:
    asked = dict(enumerate([still[0], broker.address, still[1]]))
    began = time.monotonic()
    answers = each_answer(asked, 3_600.0, lambda _, broker: cluster_id(broker), 0.05)
    assert time.monotonic() < began + 1_800
    assert list(answers) == [0, 1, 2] and answers[1] == "ours"
    assert [str(answers[key]) for key in (0, 2)] == [f"{each}: no answer in time" for each in still[:2]]


def test_who_was_silent_before_is_hardly_waited_for_again(broker: FakeBroker, paused: Address) -> None:
    broker.answers = {METADATA: lambda request: MetadataResponse(cluster_id="ours")}
    waits: list[float] = []

    class Answers(asking_several.SimpleQueue):  # type: ignore[type-arg]
        def get(self, block: bool = True, timeout: float | None = None) -> object:
            waits.append(timeout or 0.0)
            return super().get(block, timeout)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asking_several, "SimpleQueue", Answers)
        patched.setattr(asking_several, "TIMES_AS_LONG", 0)
        answers = each_answer({0: paused, 1: broker.address}, 60.0, lambda _, it: cluster_id(it), 60.0, {paused})
    assert answers[1] == "ours" and isinstance(answers[0], NoAnswer)
    assert waits[0] > 1 and 0 <= waits[1] <= asking_several.AGAIN_SECONDS and len(waits) == 2


def test_where_nobody_answers_all_have_their_time(still: list[Address]) -> None:
    answers = each_answer(dict(enumerate(still)), 0.1, lambda _, broker: cluster_id(broker), 0.1, still)
    assert all(isinstance(each, NoAnswer) for each in answers.values()) and len(answers) == 3


def test_a_mistake_of_ours_is_no_silence(broker: FakeBroker) -> None:
    def wrong(_: int, __: Conversation) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        each_answer({0: broker.address}, 60.0, wrong, 60.0)


def test_one_that_is_slow_has_its_time_when_there_is_no_other(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 0.05)
    asked: list[float] = []

    def slowly(_: MetadataRequest) -> MetadataResponse:
        asked.append(time.monotonic())
        time.sleep(0.2)
        return MetadataResponse(cluster_id="ours")

    broker.answers = {METADATA: slowly}
    assert first_answer([broker.address, NOBODY], 60.0, cluster_id) == (broker.address, "ours")
    assert len(asked) == 2


def test_everybody_is_named_who_does_not_answer(paused: Address) -> None:
    with pytest.raises(NoAnswer) as refused:
        first_answer([NOBODY, paused], 0.1, cluster_id)
    assert str(NOBODY) in str(refused.value) and str(paused) in str(refused.value)
    assert not isinstance(refused.value, NobodyHere)


def test_nobody_on_this_machine_means_that_no_cluster_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NobodyHere):
        first_answer([NOBODY, Address("localhost", 1)], 1.0, cluster_id)
    for words in (["topic", "list"], ["topic", "create", "x"], ["group", "list"], ["consume", "x"]):
        assert main([*words, "--bootstrap", str(NOBODY)]) == 1
        said = capsys.readouterr().err
        assert "no broker answers: 127.0.0.1:1: Connection refused. Is a cluster running? `klamm up` starts one" in said
    assert not Address("broker.example", 9092).is_here


def test_who_does_not_answer_is_named_while_others_are_asked(
    broker: FakeBroker, paused: Address, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 0.05)
    broker.answers = {METADATA: lambda request: MetadataResponse()}
    assert main(["group", "list", "--bootstrap", f"{paused},{broker.address}"]) == 0
    assert capsys.readouterr() == ("no groups\n", f"klamm: {paused} does not answer yet; asking on\n")
