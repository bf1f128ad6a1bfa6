"""Which records `klamm produce` takes for few: only those go without idempotence."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from klamm.cli.produce import _records, _settings, make_parser
from klamm.cli.produce_records import FEW_BYTES, Meanwhile, Shape, Tally


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[str, str]]:
    (tmp_path / "small").write_bytes(b"a\nb")
    (tmp_path / "big").write_bytes(b"x\n\x00\r\n" * FEW_BYTES)
    yield str(tmp_path / "small"), str(tmp_path / "big")


def is_idempotent(*words: str) -> bool:
    options = make_parser().parse_args(["t", *words])
    with ExitStack() as opened:
        _, are_few = _records(options, Shape(), opened, Tally(), Meanwhile())
        return bool(_settings(options, are_few)["enable.idempotence"])


def test_one_small_input_is_few(files: tuple[str, str]) -> None:
    small, _ = files
    for words in (("--value", "a"), ("--tombstone",), ("--file", small), ("--whole", "--file", small)):
        assert not is_idempotent(*words), words


def test_everything_else_is_sent_once(files: tuple[str, str]) -> None:
    small, big = files
    for words in (
        ("--value", "a", "--value", "b"),
        ("--value", "a" * FEW_BYTES),
        ("--file", big),
        ("--file", small, "--file", small),
        ("--whole", "--file", big),
        ("--whole", "--file", small, "--file", small),
    ):
        assert is_idempotent(*words), words
    assert not is_idempotent("--file", big, "--acks", "1")


def test_a_whole_file_is_whole(files: tuple[str, str]) -> None:
    options = make_parser().parse_args(["t", "--whole", "--file", files[0], "--file", files[1]])
    with ExitStack() as opened:
        values = [record[0] for record in _records(options, Shape(), opened, Tally(), Meanwhile())[0]]
    assert values == [Path(each).read_bytes() for each in files]
