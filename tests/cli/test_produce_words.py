"""What `klamm produce` says to whoever types, or mistypes."""

import gc
import os
import pty
import subprocess
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.errors import ErrorCode
from tests.cli.conftest import Klamm
from tests.cli.sending import LONG_SECONDS, begun, produce, soon_line_of
from tests.cli.taking_broker import TakingBroker
from tests.harness.topics import create_topic


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,1\nb\nc,3\n", "1 line had no separator: sent without a key"),
        (b"a\nb\n", "2 lines had no separator: sent without a key"),
    ],
)
def test_lines_without_a_separator_are_counted(
    klamm_command: Klamm, servers: str, topic: str, tmp_path: Path, data: bytes, said: str
) -> None:
    create_topic(servers, topic, 1)
    code, _, err = produce(klamm_command, topic, tmp_path, data, "--key-separator", ",")
    assert code == 0 and err.splitlines()[1:] == [said]
    assert len(produce(klamm_command, topic, tmp_path, b"a,1\n", "--key-separator", ",")[2].splitlines()) == 1


def test_on_a_terminal_it_is_said_how_it_ends(klamm_command: Klamm, servers: str, topic: str) -> None:
    create_topic(servers, topic, 1)
    ours, theirs = pty.openpty()
    typing = begun("produce", topic, "--bootstrap", servers, stdin=theirs, stderr=subprocess.PIPE)
    try:
        assert soon_line_of(typing.stderr) == b"one record a line; Ctrl-D ends\n"
        os.write(ours, b"hello\n\x04")
        assert typing.wait(LONG_SECONDS) == 0
    finally:
        typing.kill()
        typing.communicate()
        os.close(ours)
        os.close(theirs)
    assert klamm_command("consume", topic)[1] == b"hello\n"


def test_a_topic_that_is_compacted_wants_keys(klamm_command: Klamm, topic: str) -> None:
    """It said that the broker failed to validate a record, and no more."""
    compacted = ("--partitions", "1", "--replication", "1", "--config", "cleanup.policy=compact")
    assert klamm_command("topic", "create", topic, *compacted)[0] == 0
    code, _, err = klamm_command("produce", topic, "--value", "z")
    assert code == 1
    hint = "a topic that is compacted, cleanup.policy=compact, wants keys: --key or --key-separator"
    assert err.splitlines()[0].endswith(f"failed to validate record ({hint})")
    assert klamm_command("produce", topic, "--value", "z", "--key", "a")[0] == 0


def test_a_record_with_a_key_that_is_not_valid_gets_no_such_hint(capfd: pytest.CaptureFixture[str]) -> None:
    with TakingBroker("t", says=ErrorCode.INVALID_RECORD) as broker:
        assert main(["produce", "t", "--value", "z", "--key", "a", "--bootstrap", broker.servers]) == 1
        gc.collect()
    assert capfd.readouterr().err.splitlines()[0].endswith("failed to validate record")
