"""Where nobody says which cluster is meant, whoever has the usual port is asked, and it is said; nothing is deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.cli import main, unnamed
from klamm.local import listeners
from klamm.local.asking import METADATA
from klamm.local.record import FILE
from klamm.wire.messages.metadata import MetadataResponse
from tests.cli.fake_broker import FakeBroker

Said = pytest.CaptureFixture[str]


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBroker]:
    """One at the usual port, and we stand in a directory without a cluster."""
    monkeypatch.chdir(tmp_path)
    unnamed._say_once.cache_clear()
    with FakeBroker() as fake:
        monkeypatch.setattr(unnamed, "DEFAULT_BOOTSTRAP", str(fake.address))
        fake.answers = {METADATA: lambda request: MetadataResponse()}
        yield fake


def test_it_is_said_once_who_is_asked(broker: FakeBroker, tmp_path: Path, capsys: Said) -> None:
    told = f"klamm: there is no cluster in {tmp_path / 'klamm-data'}; asking {broker.address}\n"
    for expected in (told, ""):
        assert main(["group", "list"]) == 0
        assert capsys.readouterr().err == expected


def test_whose_cluster_it_is_is_said_where_it_is_known(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setattr(listeners, "cluster_on", lambda port: Path("/srv/klamm-data"))
    assert main(["group", "list"]) == 0
    assert capsys.readouterr().err.endswith(f"asking {broker.address}, the cluster in /srv/klamm-data\n")


@pytest.mark.parametrize(
    "words", [("topic", "delete", "t"), ("group", "delete", "g"), ("group", "delete-offsets", "g", "--topic", "t")]
)
def test_nothing_is_deleted_in_a_cluster_that_nobody_has_named(
    broker: FakeBroker, words: tuple[str, ...], capsys: Said
) -> None:
    assert main(list(words)) == 2
    said = capsys.readouterr().err
    assert "nothing is deleted in one that is not named; --bootstrap" in said and str(broker.address) in said
    assert broker.asked == []


@pytest.mark.parametrize("place", [FILE, f"klamm-data/demo/{FILE}"])
def test_a_cluster_right_here_is_likely_to_be_meant(
    broker: FakeBroker, tmp_path: Path, place: str, capsys: Said
) -> None:
    """In the directory of a second cluster, topics were made in the first one."""
    record = tmp_path / place
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("{}")
    assert main(["topic", "create", "t"]) != 0
    assert f"there is one in {record.parent}: add --dir" in capsys.readouterr().err
    assert broker.asked == []


def test_where_nobody_listens_nobody_is_said_to_be_asked(tmp_path: Path, capsys: Said) -> None:
    with FakeBroker() as fake:
        address = fake.address
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setattr(unnamed, "DEFAULT_BOOTSTRAP", str(address))
        assert main(["topic", "list"]) == 1
    assert "there is no cluster in" not in capsys.readouterr().err
