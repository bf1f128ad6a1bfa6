"""The files that `klamm produce` is given: however many, one after the other; and which records are few, because only
those go without idempotence."""

import fcntl
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from klamm.cli.json_records import Record
from klamm.cli.options import Misused
from klamm.cli.produce import _records, _settings, make_parser
from klamm.cli.produce_records import FEW_BYTES, BadLine, Meanwhile, Shape, Tally, lines_and_whether_few


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


def records_of(*words: str) -> Iterator[Record]:
    options = make_parser().parse_args(["t", *words])
    with ExitStack() as opened:
        yield from _records(options, Shape(), opened, Tally(), Meanwhile())[0]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("how", [(), ("--whole",), ("--format", "json")], ids=" ".join)
def test_more_files_than_a_process_may_have_open(tmp_path: Path, how: tuple[str, ...]) -> None:
    """The eleven hundredth was "filedescriptor out of range in select()"."""
    (tmp_path / "one").write_bytes(b'{"value": "x"}\n')
    open_before = open_files()
    records = records_of(*["--file", str(tmp_path / "one")] * 1_100, *how)
    next(records)
    assert open_files() <= open_before + 2
    assert len(list(records)) == 1_099


@pytest.fixture
def many() -> Iterator[None]:
    """A process that may have as many files open as it may ever have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] <= 1_024, reason="no process may have so many here")
@pytest.mark.usefixtures("many")
def test_a_file_with_a_high_number_is_read(files: tuple[str, str]) -> None:
    with Path(files[0]).open("rb") as low:
        number = fcntl.fcntl(low, fcntl.F_DUPFD, 1_024)
    with os.fdopen(number, "rb") as high:
        lines, are_few = lines_and_whether_few(high)
        assert (list(lines), are_few) == ([b"a\n", b"b"], True)


def test_files_that_cannot_be_read_are_refused_before_anything_is_sent(files: tuple[str, str], tmp_path: Path) -> None:
    for missing, why in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(Misused, match=f"cannot read {missing}: {why}"):
            next(records_of("--file", files[0], "--file", str(missing)))


def test_a_file_that_goes_before_its_turn_ends_it_there(files: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "gone").touch()
    records = records_of("--file", files[0], "--file", str(tmp_path / "gone"))
    next(records)
    (tmp_path / "gone").unlink()
    with pytest.raises(BadLine, match="cannot read"):
        list(records)


def test_pipes_are_read_in_turn(tmp_path: Path) -> None:
    """Who writes into one is not told that nobody reads."""
    names = [str(tmp_path / name) for name in ("first", "second")]
    for name in names:
        os.mkfifo(name)

    def write() -> None:
        for name in names:
            Path(name).write_bytes(name.encode())

    writer = threading.Thread(target=write)
    writer.start()
    assert [each[0] for each in records_of("--file", names[0], "--file", names[1])] == [name.encode() for name in names]
    writer.join()


def test_a_whole_file_is_whole(files: tuple[str, str]) -> None:
    options = make_parser().parse_args(["t", "--whole", "--file", files[0], "--file", files[1]])
    with ExitStack() as opened:
        values = [record[0] for record in _records(options, Shape(), opened, Tally(), Meanwhile())[0]]
    assert values == [Path(each).read_bytes() for each in files]
