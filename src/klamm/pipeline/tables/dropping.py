"""A table removed, if it is one that a pipeline has made here, and nothing else.

A name and a place are not enough: somebody may have put a table of their own there, or a directory of something else.
So a Delta table has to have the settings that ours are made with, and a Parquet table our notes; whoever wrote batches
into it, as the table remembers, has to be the pipeline; and there has to be nothing beside it in its directory: no file
but those that a Delta table's log names, and what writers leave behind, which is known by its name. Rows that somebody
else added to a table of ours, or wrote anew to alter it, go with it.
"""

import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from klamm.pipeline.problems import PipelineError
from klamm.pipeline.tables.delta import CONFIGURATION, KEYED
from klamm.pipeline.tables.parquet import OURS, SCHEMA, STAGING

DELTA_LOG = "_delta_log"
DROPPED = ".dropped."
OUR_FILE = re.compile(r"part-.{1,60}-[0-9a-f]{8}-\d{8,}(-[0-9a-f]{8})?\..+\.parquet")
"""As `places` names them; those of a Delta table name the attempt too."""
DELTA_FILE = re.compile(r"part-\d{5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-c\d{3}(\.\w+)?\.parquet")
"""As delta-rs and Spark name them."""


class NotOurs(PipelineError):  # noqa: N818
    """It stays, and so does everything else."""


@dataclass(frozen=True, slots=True)
class Droppable:
    path: Path
    rows: int

    @property
    def name(self) -> str:
        return self.path.name


def droppable(path: Path, writers: re.Pattern[str]) -> Droppable | None:
    """The table there, if there is one; NotOurs if something else is there. `writers` are the names of the applications
    that may have written batches to it."""
    if not path.exists() and not path.is_symlink():
        return None
    if path.is_symlink() or not path.is_dir():
        raise _not_ours(path, "it is a link" if path.is_symlink() else "it is a file")
    if not any(path.iterdir()):
        return Droppable(path, 0)
    if (path / DELTA_LOG).is_dir():
        return _delta(path, writers)
    if (path / OURS / SCHEMA).is_file() or _notes(path):
        return _parquet(path, writers)
    raise _not_ours(path, "it holds neither a Delta table nor a Parquet table of a pipeline's")


@contextmanager
def put_aside(tables: Iterable[Droppable]) -> Iterator[None]:
    """They leave by a rename, so that nobody ever sees half of one, and all or none of them do: if one cannot, or what
    is done meanwhile fails, those that have left come back. `sweep` removes them for good."""
    left: dict[Path, Path] = {}
    try:
        for table in tables:
            aside = table.path.with_name(f"{DROPPED}{uuid.uuid4().hex}")
            table.path.rename(aside)
            left[table.path] = aside
        yield
    except OSError as problem:
        lost = [f"{path} is at {aside} now: move it back" for path, aside in left.items() if not _is_back(path, aside)]
        raise PipelineError(
            f"{problem.filename} cannot be moved away: {problem.strerror}. So tables and checkpoints stay as they "
            f"were. {''.join(f'But {each}. ' for each in lost)}Mend that, or let the pipeline work elsewhere with "
            "--data DIR."
        ) from problem


def sweep(tables: Path) -> None:
    """What was put aside, also by a run that was killed then."""
    for left in tables.glob(f"{DROPPED}*"):
        shutil.rmtree(left, ignore_errors=True)


def _is_back(path: Path, aside: Path) -> bool:
    try:
        aside.rename(path)
    except OSError:
        return False
    return True


def _delta(path: Path, writers: re.Pattern[str]) -> Droppable:
    try:
        table = DeltaTable(path)
        settings, rows = table.metadata().configuration, int(table.count())
        log = _log_of(path / DELTA_LOG)
    except (DeltaError, OSError, ValueError, pa.ArrowException) as problem:
        raise _not_ours(path, f"it cannot be read ({str(problem).splitlines()[0]})") from problem
    if any(settings.get(name) != value for name, value in CONFIGURATION.items()):
        raise _not_ours(path, "another program made that Delta table")
    _check_applications(path, writers, log.applications - {KEYED})
    _check_nothing_beside(
        path,
        {DELTA_LOG},
        lambda name: name in log.files or bool(OUR_FILE.fullmatch(name) or DELTA_FILE.fullmatch(name)),
    )
    return Droppable(path, rows)


@dataclass(frozen=True, slots=True)
class _Log:
    applications: set[str]
    """Everybody who wrote batches."""
    files: set[str]
    """Those that are in the table, and those that were."""


def _log_of(directory: Path) -> _Log:
    """From commits, and from checkpoints, in which commits end up after a while."""
    applications, files = set(), set()
    for action in _actions(directory):
        if action.get("txn"):
            applications.add(action["txn"]["appId"])
        for change in (action.get("add"), action.get("remove")):
            if change:
                files.add(unquote(change["path"]))
    return _Log(applications, files)


def _actions(directory: Path) -> Iterator[dict[str, Any]]:
    for file in directory.glob("*.json"):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
    for file in directory.glob("*.checkpoint*.parquet"):
        # Not `read_table`, which would make columns of the fields.
        with pq.ParquetFile(file) as checkpoint:
            yield from checkpoint.read(columns=["txn.appId", "add.path", "remove.path"]).to_pylist()


def _parquet(path: Path, writers: re.Pattern[str]) -> Droppable:
    try:
        applications = {json.loads(file.read_text(encoding="utf-8"))["application"] for file in _notes(path)}
        files = [file for file in path.glob("*.parquet") if file.name[0] not in "._"]
        rows = sum(pq.read_metadata(file).num_rows for file in files)
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException) as problem:
        raise _not_ours(path, f"it cannot be read ({str(problem).splitlines()[0]})") from problem
    _check_applications(path, writers, applications)
    others = sorted(file.name for file in files if not OUR_FILE.fullmatch(file.name))
    if others:
        raise _not_ours(path, f"another program wrote {others[0]} there")
    # Our lines that alter such a table write each file beside the old one first, and may have stopped there.
    _check_nothing_beside(path, {OURS, STAGING}, lambda name: bool(OUR_FILE.fullmatch(name.removeprefix("_"))))
    return Droppable(path, rows)


def _notes(path: Path) -> list[Path]:
    """Of a Parquet table: which batches it has. After its columns were altered, its note of these is not there."""
    return sorted((path / OURS).glob("part-*.json"))


def _check_applications(path: Path, writers: re.Pattern[str], applications: Iterable[str]) -> None:
    others = sorted(name for name in applications if not writers.fullmatch(name))
    if others:
        raise _not_ours(path, f"{others[0]} has written batches to it")


def _check_nothing_beside(path: Path, known: set[str], is_part: Callable[[str], bool]) -> None:
    strange = [
        each.name
        for each in path.iterdir()
        if each.name not in known and not (each.is_file() and is_part(_of_checksum(each.name)))
    ]
    if strange:
        raise _not_ours(path, f"{min(strange)} in it is no part of the table")


def _of_checksum(name: str) -> str:
    """`.NAME.crc` is what Hadoop's file systems keep beside a file; other names are their own."""
    return name[1:-4] if name[0] == "." and name.endswith(".crc") else name


def _not_ours(path: Path, why: str) -> NotOurs:
    return NotOurs(
        f"{path} is not removed: {why}. So nothing was changed. Move it away, or let the pipeline work elsewhere with "
        "--data DIR."
    )
