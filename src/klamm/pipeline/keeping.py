"""What a pipeline keeps in its directory, and whose it is: tables, checkpoints, and a lock while it runs.

    DATA/tables/NAME        the tables
    DATA/checkpoints/QUERY  how far each query has read, and its state: Spark's, with a note of ours
    DATA/lock               held by the run that is going on

The note says which cluster the offsets are of, what the query reads and what its state looks like. Offsets of one
cluster mean nothing in another, and state of one aggregation nothing to the next; Spark would find out late or never.
The note's id is new with every new checkpoint: tables remember batches under it, and batches are counted from 0 again.
"""

import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from klamm.pipeline.declaration import Table
from klamm.pipeline.planning import PlannedQuery
from klamm.pipeline.problems import PipelineError, together

NOTE = "klamm.json"
FORGOTTEN = "checkpoints.forgotten."
NO_STATE = "no state"
LOCK_ATTEMPTS = 10
REMEDY = (
    "Let this run begin anew elsewhere with --data DIR --reset, or forget what was read so far with --reset: the "
    "tables stay, rows whose key they have are left alone or, where a table updates, replaced, and topics get "
    "everything once more. "
    "--reset --drop-tables begins with empty tables."
)


class Busy(PipelineError):  # noqa: N818
    """Another run holds the directory."""


class Foreign(PipelineError):  # noqa: N818
    """The checkpoint is of something else."""


@dataclass(frozen=True, slots=True)
class Claim:
    checkpoint_id: str
    new_outputs: tuple[str, ...] = ()
    """Labels of those that were not there when the query read what it has read."""
    missing_tables: tuple[str, ...] = ()
    """Labels of those that it has written to, and that are not there any more."""
    is_new: bool = field(default=False, compare=False)
    note: dict[str, object] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Directory:
    path: Path
    """Absolute: Spark's workers stand elsewhere."""

    def table(self, name: str) -> str:
        return str(self.tables / name)

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    def checkpoint(self, query: str) -> Path:
        return self.path / "checkpoints" / query

    @property
    def checkpoints(self) -> list[str]:
        root = self.path / "checkpoints"
        return sorted(each.name for each in root.iterdir() if each.is_dir()) if root.is_dir() else []

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun here, even if it did not come to a batch."""
        return any((self.checkpoint(query) / NOTE).exists() for query in self.checkpoints)

    def forget(self) -> None:
        """All or nothing: they leave by a rename, and then there is time to remove them. Half of a checkpoint would be
        one that counts batches from 0 under a name whose batches the tables have."""
        root = self.path / "checkpoints"
        if root.is_dir():
            root.rename(self.path / f"{FORGOTTEN}{uuid.uuid4().hex}")
        # From here on it is done: what cannot be removed now is removed the next time.
        with suppress(OSError):
            for left in self.path.glob(f"{FORGOTTEN}*"):
                shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """One run at a time. The lock goes with the process that has it, however it ends; a file that a killed one
        left behind holds nobody up. Nothing is left of a run that left nothing else."""
        made = self._make()
        file = self._locked()
        with file:
            try:
                file.truncate(0)
                file.write(str(os.getpid()))
                file.flush()
                yield
            finally:
                # While it is still held: afterwards it might be another's. It is already if somebody removed ours.
                if _is_at(self._lock, file):
                    self._lock.unlink(missing_ok=True)
                for directory in made:
                    with suppress(OSError):
                        directory.rmdir()

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    def _locked(self) -> TextIO:
        """Whoever had it before may remove the file between our opening and our locking it: then it is nobody's lock
        any more, and there may be a new one."""
        for _ in range(LOCK_ATTEMPTS):
            self._make()
            try:
                file = self._lock.open("a+", encoding="utf-8")
            except FileNotFoundError:
                continue  # The directory was removed right between the two.
            except OSError as problem:
                raise self._cannot_be_taken(problem.strerror) from problem
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(self._lock, file):
                    return file
            except BlockingIOError:
                with file:
                    file.seek(0)
                    raise self._busy(file.read().strip() or "unknown") from None
            except OSError as problem:
                file.close()
                raise self._cannot_be_taken(problem.strerror) from problem
            file.close()
        is_link = self._lock.is_symlink()
        raise self._cannot_be_taken("it is a link to nowhere" if is_link else "it is removed again and again")

    def _cannot_be_taken(self, why: str | None) -> PipelineError:
        return PipelineError(
            f"{self._lock}, which a run holds, cannot be taken: {why}. Put that right, or name another directory with "
            "--data."
        )

    def _busy(self, holder: str) -> Busy:
        return Busy(
            f"another run of a pipeline (process {holder}) uses {self.path}. Stop it first (kill -TERM "
            f"{holder} ends it after its batch), or let this one work elsewhere with --data."
        )

    def check_cluster(self, cluster_id: str) -> None:
        """Whether what was read here so far was read from this cluster."""
        for query in self.checkpoints:
            kept = self._note(query)
            if kept is not None and kept["cluster"] != cluster_id:
                raise Foreign(
                    f"the checkpoints in {self.path} are of another cluster (its id is {kept['cluster']}, this one's "
                    f"{cluster_id}), and offsets there say nothing about the records here. Name the right cluster with "
                    f"--bootstrap. {REMEDY}"
                )

    def claimed(self, query: PlannedQuery, cluster_id: str) -> Claim:
        """The query's checkpoint: its own, or a new one. Nothing is changed before it is settled."""
        self.check_cluster(cluster_id)
        wanted: dict[str, object] = {
            "cluster": cluster_id,
            "topics": sorted(source.topic for source in query.sources),
            "state": [*query.operators, query.mode] if query.operators else [],
            "computes": list(query.computes),
        }
        outputs = sorted(output.label for output in query.outputs)
        kept = self._note(query.name)
        checkpoint = self.checkpoint(query.name)
        # Spark writes down a batch's offsets before it begins.
        if kept is not None and _has_number(checkpoint / "offsets"):
            self._check(query, kept, wanted)
            known = kept.get("outputs", outputs)
            assert isinstance(known, list)
            missing = self._missing_tables(query, known) if _has_number(checkpoint / "commits") else ()
            new = tuple(each for each in outputs if each not in known)
            return Claim(str(kept["id"]), new, missing, note={**kept, "outputs": outputs})
        if kept is None and (checkpoint / "offsets").exists():
            raise Foreign(
                f"{checkpoint} is a checkpoint that no `klamm pipeline run` has made. Let the pipeline work elsewhere "
                "with --data, or forget what was read so far with --reset."
            )
        checkpoint_id = uuid.uuid4().hex
        return Claim(checkpoint_id, is_new=True, note={"id": checkpoint_id, **wanted, "outputs": outputs})

    def settle(self, query: str, claim: Claim) -> None:
        checkpoint = self.checkpoint(query)
        if claim.is_new and checkpoint.exists():
            # No batch has begun, or somebody has removed the offsets: then what else there is says nothing any more.
            shutil.rmtree(checkpoint)
        self._write_note(query, claim.note)

    def _missing_tables(self, query: PlannedQuery, known: list[object]) -> tuple[str, ...]:
        """The first batch makes a table, whatever is in it. Quarantine's is not among them: perhaps all was good."""
        tables = [output for output in query.outputs if isinstance(output, Table) and output.label in known]
        return tuple(table.label for table in tables if not Path(self.table(table.name)).is_dir())

    def _write_note(self, query: str, note: dict[str, object]) -> None:
        checkpoint = self.checkpoint(query)
        checkpoint.mkdir(parents=True, exist_ok=True)
        beside = checkpoint / f"{NOTE}.new"
        beside.write_text(json.dumps(note, indent=2), encoding="utf-8")
        beside.replace(checkpoint / NOTE)

    def _note(self, query: str) -> dict[str, object] | None:
        file = self.checkpoint(query) / NOTE
        if not file.exists():
            return None
        note: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
        return note

    def _check(self, query: PlannedQuery, kept: dict[str, Any], wanted: dict[str, Any]) -> None:
        if kept["topics"] != wanted["topics"]:
            raise Foreign(
                f"query {query.name} has read {together(kept['topics'])} so far and would now read "
                f"{together(wanted['topics'])}: its checkpoint in {self.path} does not fit any more. {REMEDY}"
            )
        if kept["state"] != wanted["state"]:
            before, now = (together(each["state"]) or NO_STATE for each in (kept, wanted))
            raise Foreign(
                f"query {query.name} has changed: it kept {before} and would now need {now}, so that the state in "
                f"{self.path} does not fit any more. {REMEDY}"
            )

        if kept.get("computes", wanted["computes"]) != wanted["computes"]:
            raise Foreign(
                f"query {query.name} computes something else than before, or in other windows: what it has summed up "
                f"in {self.path} would be mixed with it. {REMEDY}"
            )

    def _make(self) -> list[Path]:
        """Those that were not there, the innermost first."""
        try:
            made = [each for each in (self.path, *self.path.parents) if not each.exists()]
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise PipelineError(
                f"{self.path} cannot be made: {problem.strerror}. Name another directory with --data."
            ) from problem
        return made


def application(pipeline: str, query: str, table: str, checkpoint_id: str) -> str:
    """The name under which a table remembers the batches of a query's checkpoint."""
    return f"{pipeline}.{query}.{table}.{checkpoint_id}"


def applications(pipeline: str, table: str) -> re.Pattern[str]:
    """Those of all queries and checkpoints. Names of pipelines and tables may have dots in them; those of queries are
    Python's."""
    return re.compile(rf"{re.escape(pipeline)}\.\w+\.{re.escape(table)}\.[0-9a-f]{{32}}")


def _has_number(directory: Path) -> bool:
    """Whether a batch is written down there."""
    return directory.is_dir() and any(each.name.isdigit() for each in directory.iterdir())


def _is_at(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
