"""Several brokers to ask: the first that answers counts, and one that stands still holds nobody up."""

import socket
import time
from collections.abc import Iterator

import pytest

from klamm.cli import main
from klamm.local import asking
from klamm.local.asking import METADATA, Address, Conversation, NoAnswer, NobodyHere, first_answer
from klamm.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.cli.fake_broker import FakeBroker

NOBODY = Address("127.0.0.1", 1)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as started:
        started.answers = {METADATA: lambda request: MetadataResponse(cluster_id="ours")}
        yield started


@pytest.fixture
def paused() -> Iterator[Address]:
    """Takes connections, as a process does that stands still, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Address(*listening.getsockname())


def cluster_id(broker: Conversation) -> str:
    return str(broker.ask(METADATA, 12, MetadataRequest(topics=[])).cluster_id)


def test_one_that_stands_still_is_passed_over(
    broker: FakeBroker, paused: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SOON_SECONDS", 0.05)
    silent: list[Address] = []
    began = time.monotonic()
    answered = first_answer([NOBODY, paused, broker.address], 60.0, cluster_id, silent.append)
    assert answered == (broker.address, "ours") and silent == [paused]
    assert time.monotonic() < began + 30


def test_one_that_is_slow_has_its_time_when_there_is_no_other(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SOON_SECONDS", 0.05)
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
    monkeypatch.setattr(asking, "SOON_SECONDS", 0.05)
    broker.answers = {METADATA: lambda request: MetadataResponse()}
    assert main(["group", "list", "--bootstrap", f"{paused},{broker.address}"]) == 0
    assert capsys.readouterr() == ("no groups\n", f"{paused} does not answer yet; asking on\n")
