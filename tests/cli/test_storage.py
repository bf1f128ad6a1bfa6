"""`klamm storage` on the directory of a real broker that was killed, with both damages that made one remove records."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.cli import storage
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed
from klamm.node.inspection import Finding, Inspection, Repair
from klamm.records.batch import batches
from tests.cli.running import klamm
from tests.crash.client import Client
from tests.faults.broker import check_no_stack_trace, read, refused, write
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.waiting import wait_until

VALUES = [b"%d" % number + b"." * 50 for number in range(30)]
METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def killed(start_node: StartNode) -> Iterator[Node]:
    node = start_node()
    with Client(node.port) as client:
        for topic in ("orders", "others"):
            client.create_topic(topic)
            write(client, topic, *VALUES)
    node.kill9()
    yield node
    check_no_stack_trace(node)


def check_serves(node: Node, *topics: str) -> None:
    with Client(node.port) as client:
        for topic in topics:
            assert read(client, topic) == VALUES


def content(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_directory_without_a_name_is_offline_until_it_is_repaired(killed: Node) -> None:
    """200 random bytes: within eight seconds the records were gone, with one warning."""
    (killed.dir / "orders-0/partition.metadata").write_bytes(bytes(range(200)))
    killed.start()
    check_serves(killed, "others")
    with Client(killed.port) as client:
        assert client.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    [line] = [line for line in killed.log.splitlines() if " ERROR " in line]
    assert "orders-0" in line and "klamm storage repair" in line
    in_use = klamm("storage", "check", str(killed.dir))
    assert in_use.code == 1 and "in use" in in_use.err
    killed.kill9()
    before = content(killed.dir)
    checked = klamm("storage", "check", str(killed.dir), "--json")
    assert checked.code == 1 and content(killed.dir) == before
    [finding] = [each for each in checked.json["findings"] if each["harmful"]]
    assert finding["path"] == "orders-0/partition.metadata" and finding["offsets"] == {"first": 0, "end": 30}
    assert klamm("storage", "repair", str(killed.dir), "--dry-run").code == 1 and content(killed.dir) == before
    repaired = klamm("storage", "repair", str(killed.dir))
    assert repaired.code == 0 and "topic orders" in repaired.out
    assert klamm("storage", "check", str(killed.dir)).code == 0
    killed.start()
    check_serves(killed, "orders", "others")


def test_a_damaged_metadata_log_is_refused_and_repaired(killed: Node) -> None:
    """One flipped byte with whole batches behind it: topics created after it were removed with their records."""
    path = killed.dir / METADATA_LOG
    data = bytearray(path.read_bytes())
    position = next(
        at for at, batch in batches(memoryview(bytes(data))) if b"orders" in bytes(data)[at : at + batch.size_bytes]
    )
    data[position + 70] ^= 1
    path.write_bytes(data)
    before = content(killed.dir)
    reason = refused(killed.dir).reason
    assert "whole batches" in reason and "klamm storage repair" in reason
    changed = {name for name, found in content(killed.dir).items() if before.get(name) != found}
    assert all(name.endswith(("index", ".lock")) for name in changed), "nothing was changed"
    said = klamm("storage", "repair", str(killed.dir))
    assert said.code == 0 and "records of metadata" in said.out
    killed.start()
    check_serves(killed, "others")
    wait_until(lambda: "kept and not used" in killed.log, "it is told that orders-0 is kept")
    [kept] = killed.dir.glob("orders-0.*-stray")
    assert all(value in (kept / "00000000000000000000.log").read_bytes() for value in VALUES)


def test_a_directory_in_order(killed: Node) -> None:
    ended = klamm("storage", "check", str(killed.dir))
    assert ended.code == 0 and "nothing is damaged" in ended.out
    assert klamm("storage", "repair", str(killed.dir)).code == 0


def test_a_lost_identity(killed: Node) -> None:
    """A start would have made it another cluster's first node, and removed every topic."""
    (killed.dir / "meta.properties").unlink()
    assert "meta.properties is missing" in refused(killed.dir).reason
    advised = klamm("storage", "repair", str(killed.dir))
    assert advised.code == 1 and "--cluster-id" in advised.out
    wanted = ("--id", "0", "--cluster-id", "4L6g3nShT-eMCtK--X86sw")
    assert klamm("storage", "repair", str(killed.dir), *wanted).code == 0
    killed.start()
    check_serves(killed, "orders", "others")


def test_no_such_directory(tmp_path: Path) -> None:
    ended = klamm("storage", "check", str(tmp_path / "nowhere"))
    assert ended.code == 2 and "there is no directory" in ended.err


def test_what_was_not_repaired_is_not_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs read `"repaired": true` and go on."""

    def fails() -> None:
        raise DiskFailed("orders-0: Input/output error", errno.EIO)

    seen = Inspection([Finding("orders-0", "damaged", repair=Repair("set orders-0 aside", fails))])
    monkeypatch.setattr("klamm.node.repairs.inspect", lambda *arguments: seen)
    assert storage.run(["repair", str(tmp_path), "--json"]) == 1
    told = capsys.readouterr()
    assert not told.out and "Input/output error" in told.err
