"""`klamm pipeline generate`: what is in the topic is what the ledger says, and the seed says it again.

What keeps it from being there is said while it lasts, and in the end.
"""

import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

import klamm
from klamm.cli.pipeline_generate import run
from klamm.pipeline.invoice import generating, sending
from klamm.pipeline.invoice.generator import COPY, Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.sending import PARTITIONS, Sent
from tests.cli.sending import SOON_SECONDS, begun, soon_line_of
from tests.cli.taking_broker import TakingBroker

COUNT = 500
SHARES = ["--malformed", "0.1", "--late", "0.1", "--copied", "0.1", "--huge", "0"]
RECIPE = Recipe(seed=4, count=COUNT, malformed=0.1, late=0.1, copied=0.1, huge=0, start_ms=1_800_000_000_000)
SLOW = "0.03"


def test_everything_arrives_once_and_is_in_the_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with klamm.Cluster(brokers=1) as cluster:
        where = ["--bootstrap", cluster.bootstrap_servers, "--ledger", str(tmp_path / "ledger.json")]
        said = ["--count", str(COUNT), "--seed", "4", "--start-ms", str(RECIPE.start_ms), *SHARES]
        assert run([*where, *said]) == 0
        values = _values(cluster.bootstrap_servers)
    assert signal.getsignal(signal.SIGINT) == before
    expected = Ledger.of(RECIPE)
    for invoice in generated(RECIPE):
        expected.note(invoice)
    assert Ledger.load(tmp_path / "ledger.json") == expected
    assert Counter(values) == Counter(each.value for each in generated(RECIPE))
    assert expected.records == COUNT + expected.fates[COPY] and expected.copies == expected.fates[COPY]
    # Who asked for 500 is told right away why it is more.
    said_at_last = capsys.readouterr().err.splitlines()[-1]
    sent = f"500 invoices and {expected.copies} copies: {expected.records} of {expected.records} records acknowledged, "
    assert said_at_last.startswith(sent) and " copy" not in said_at_last
    assert said_at_last.endswith(f", {expected.fates['on time']} on time")


def _values(servers: str) -> list[bytes]:
    reader = Consumer({"bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False})
    places = [TopicPartition("invoice", each, 0) for each in range(PARTITIONS)]
    left = sum(reader.get_watermark_offsets(place, timeout=30)[1] for place in places)
    reader.assign(places)
    values = []
    for _ in range(left):
        message = reader.poll(30)
        assert message is not None and message.error() is None
        values.append(message.value() or b"")
    reader.close()
    return values


def test_copies_come_on_top_also_while_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """20,195 of 20,195 records, it said to who asked for 20,000, and in a list at the end: 195 copy."""
    monkeypatch.setattr(generating, "SAY_EVERY_SECONDS", 0.0)
    ledger = Ledger.of(RECIPE)
    view = generating._View(COUNT, ledger)
    for invoice in generated(RECIPE):
        ledger.note(invoice)
        if invoice.fate == COPY:
            break
    view.show(Sent(ledger.records, 7))
    beginning = f"{ledger.records - 1} of 500 invoices and 1 copy sent, 7 acknowledged, "
    assert capsys.readouterr().err.startswith(beginning)


def test_a_topic_that_cannot_be_made_is_no_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """It said that 127.0.0.1:42169 does not answer any more, and then what it had answered."""
    with klamm.Cluster(brokers=1) as cluster:
        assert run(["--bootstrap", cluster.bootstrap_servers, "--topic", "in voice!"]) == 1
    assert "klamm pipeline generate: cannot make topic in voice!: Topic name is invalid" in capsys.readouterr().err


def test_an_outage_is_told_at_any_pace_and_ctrl_c_is_heard_in_it() -> None:
    with TakingBroker("invoice", leads=[], leaderless=[0]) as broker:
        command = ["pipeline", "generate", "--rate", SLOW, "--bootstrap", broker.servers]
        # Nothing is kept back from who asks whether there is a line.
        running = begun(*command, stderr=subprocess.PIPE, bufsize=0)
        try:
            _wait_said(running, b"klamm pipeline generate: no acknowledgement yet: invoice-0 has no leader")
            running.send_signal(signal.SIGINT)
            _wait_said(running, b"stopping, when what was sent is acknowledged")
            running.send_signal(signal.SIGINT)
            _wait_said(running, b"1 invoice: 0 of 1 record acknowledged")
            assert running.wait(SOON_SECONDS) == 1
        finally:
            running.kill()
            running.wait()


def _wait_said(command: "subprocess.Popen[bytes]", beginning: bytes) -> None:
    while not (line := soon_line_of(command.stderr)).startswith(beginning):
        assert line, f"it ended, and did not say {beginning!r}"


def test_in_the_end_it_says_what_was_in_the_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While others acknowledged, nobody had asked."""
    monkeypatch.setattr(sending, "GIVE_UP_SECONDS", 2.0)
    with TakingBroker("invoice", leads=[1, 2], leaderless=[0]) as broker:
        assert run(["--bootstrap", broker.servers, "--count", str(COUNT), "--rate", "50"]) == 1
    *_, given_up, why = capsys.readouterr().err.splitlines()
    assert given_up.endswith(", given up because a partition acknowledged nothing for 2 s; some may be there")
    assert why == "klamm pipeline generate: invoice-0 has no leader"
