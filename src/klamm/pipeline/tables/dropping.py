"""A table removed, if it is one that a pipeline has made here, and nothing else.

A name and a place are not enough: somebody may have put a table of their own there, or a directory of something else.
So a Delta table has to have the settings that ours are made with, and a Parquet table our notes; whoever wrote batches
into it, as the table remembers, has to be the pipeline; and there has to be nothing beside it in its directory. Rows
that somebody else added to a table of ours, or wrote anew to alter it, go with it.
"""

import json
import re
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from klamm.pipeline.problems import PipelineError
from klamm.pipeline.tables.delta import CONFIGURATION, KEYED
from klamm.pipeline.tables.parquet import OURS, SCHEMA, STAGING

DELTA_LOG = "_delta_log"
DROPPED = ".dropped."
OUR_FILE = re.compile(r"part-.{1,60}-[0-9a-f]{8}-\d{8,}\..+\.parquet")
"""As `places` names them."""


class NotOurs(PipelineError):  # noqa: N818
    """It stays, and so does everything else."""


@dataclass(frozen=True, slots=True)
class Droppable:
    path: Path
    rows: int

    @property
    def name(self) -> str:
        return self.path.name

    def drop(self) -> None:
        """It leaves by a rename, so that nobody ever sees half of it."""
        aside = self.path.with_name(f"{DROPPED}{uuid.uuid4().hex}")
        self.path.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


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
    if (path / OURS / SCHEMA).is_file():
        return _parquet(path, writers)
    raise _not_ours(path, "it holds neither a Delta table nor a Parquet table of a pipeline's")


def sweep(tables: Path) -> None:
    """What a run that was killed while it dropped a table has left of it."""
    for left in tables.glob(f"{DROPPED}*"):
        shutil.rmtree(left, ignore_errors=True)


def _delta(path: Path, writers: re.Pattern[str]) -> Droppable:
    try:
        table = DeltaTable(path)
        settings, rows = table.metadata().configuration, int(table.count())
    except (DeltaError, OSError) as problem:
        raise _not_ours(path, f"it cannot be read ({str(problem).splitlines()[0]})") from problem
    if any(settings.get(name) != value for name, value in CONFIGURATION.items()):
        raise _not_ours(path, "another program made that Delta table")
    _check_applications(path, writers, _applications_of(path / DELTA_LOG))
    _check_nothing_beside(path, {DELTA_LOG})
    return Droppable(path, rows)


def _applications_of(log: Path) -> set[str]:
    """Of everybody who wrote batches: from commits, and from checkpoints, in which commits end up after a while."""
    found = set()
    for file in log.glob("*.json"):
        for line in file.read_text(encoding="utf-8").splitlines():
            found.add(json.loads(line).get("txn", {}).get("appId"))
    for file in log.glob("*.checkpoint*.parquet"):
        if "txn" in pq.read_schema(file).names:
            found |= {row["txn"]["appId"] for row in pq.read_table(file, columns=["txn"]).to_pylist() if row["txn"]}
    return {name for name in found if name not in (None, KEYED)}


def _parquet(path: Path, writers: re.Pattern[str]) -> Droppable:
    notes = [file for file in (path / OURS).glob("*.json") if file.name[0] != "." and file.name != SCHEMA]
    applications = {json.loads(file.read_text(encoding="utf-8"))["application"] for file in notes}
    _check_applications(path, writers, applications)
    _check_nothing_beside(path, {OURS, STAGING})
    files = [file for file in path.glob("*.parquet") if file.name[0] not in "._"]
    others = sorted(file.name for file in files if not OUR_FILE.fullmatch(file.name))
    if others:
        raise _not_ours(path, f"another program wrote {others[0]} there")
    return Droppable(path, sum(pq.read_metadata(file).num_rows for file in files))


def _check_applications(path: Path, writers: re.Pattern[str], applications: Iterable[str]) -> None:
    others = sorted(name for name in applications if not writers.fullmatch(name))
    if others:
        raise _not_ours(path, f"{others[0]} has written batches to it")


def _check_nothing_beside(path: Path, known: set[str]) -> None:
    """Parquet files, and what file systems and other writers of Delta keep beside them under hidden names."""
    strange = [
        each.name
        for each in path.iterdir()
        if each.name not in known and not (each.is_file() and each.name.endswith((".parquet", ".crc")))
    ]
    if strange:
        raise _not_ours(path, f"{min(strange)} in it is no part of a table")


def _not_ours(path: Path, why: str) -> NotOurs:
    return NotOurs(
        f"{path} is not removed: {why}. So nothing was changed. Move it away, or let the pipeline work elsewhere with "
        "--data DIR."
    )
