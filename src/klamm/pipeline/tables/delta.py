"""A Delta table, through `deltalake`: files that executors wrote, committed with the batch's number.

The commit holds the new files, the removal of those they replace, and the transaction (application, batch); Delta keeps
the last batch of each application. Whoever runs a batch again finds it there and writes nothing. With `update`, only
files in which a key was found are written anew; removals and additions are one commit.

Commits to a table with a key also carry a transaction under a name that all of them share, and Delta refuses the later
of two that overlap: nobody may add a key while another looks whether it is there. Who is refused looks again. A writer
that is not ours and adds the same keys at the same moment is not noticed.

A batch that changes nothing commits nothing: to run it again is harmless. Files that belong to no version (of attempts
that failed, of tasks that ran twice) and files replaced an hour ago are swept up now and then.
"""

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from klamm.pipeline.tables import job
from klamm.pipeline.tables.fitting import DoesNotFit, added_columns, check_key, null_key, schema_of_table
from klamm.pipeline.tables.places import Held, buckets_for, digest, held, is_dealt, stem_of
from klamm.pipeline.tables.work import Report, Work, Written
from klamm.pipeline.tables.writing import is_there

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS = 5
SWEEP_EVERY = 100
"""Versions of the table."""
KEYED = "klamm.keyed"
CONFIGURATION: dict[str, str | None] = {
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.logRetentionDuration": "interval 1 days",
}
"""Tables of streams have many versions. Whoever reads one has an hour before its files go."""


class DeltaSink:
    def __init__(
        self, spark: "SparkSession", directory: str, key: tuple[str, ...], mode: str, application: str
    ) -> None:
        self._directory = directory
        self._key = key
        self._mode = mode
        self._application = application
        self._cores = spark.sparkContext.defaultParallelism
        self._table: DeltaTable | None = None
        self._last_bytes = 0

    def __repr__(self) -> str:
        version = self._table.version() if self._table else "not opened"
        return f"<delta {self._directory} version={version} {self._mode} {','.join(self._key)}>"

    def write(self, rows: "DataFrame", batch_id: int) -> Written:
        """Exactly once for this application and batch. To be called from `foreachBatch`."""
        schema = schema_of_table(rows.schema, self._directory)
        check_key(self._key, schema, self._directory)
        refused: CommitFailedError | None = None
        for _ in range(ATTEMPTS):
            table = self._opened(schema)
            done = table.transaction_version(self._application)
            if done is not None and done >= batch_id:
                return Written(was_done=True)
            try:
                self._grow(table, schema)
                written = self._attempt(table, rows, batch_id)
            except CommitFailedError as error:
                refused = error
            else:
                self._maybe_sweep(table)
                return written
        assert refused is not None
        raise refused

    def new_columns(self, rows: StructType) -> list[str]:
        if not DeltaTable.is_deltatable(self._directory):
            return []
        there = _schema_of(DeltaTable(self._directory), self._directory)
        new = added_columns(there, schema_of_table(rows, self._directory), self._directory, may_grow=True)
        return [field.name for field in new]

    def _opened(self, schema: StructType) -> DeltaTable:
        """At its newest version."""
        if self._table is not None:
            self._table.update_incremental()
        elif DeltaTable.is_deltatable(self._directory):
            self._table = DeltaTable(self._directory)
            _check_usable(self._table, self._directory)
        else:
            _check_empty(Path(self._directory))
            self._table = DeltaTable.create(
                self._directory, Schema.from_json(schema.json()), mode="ignore", configuration=CONFIGURATION
            )
        return self._table

    def _grow(self, table: DeltaTable, schema: StructType) -> None:
        """A commit of its own before the batch's: the batch that is run again finds the columns there."""
        new = added_columns(_schema_of(table, self._directory), schema, self._directory, may_grow=True)
        if new:
            table.alter.add_columns(list(Schema.from_json(StructType(new).json()).fields))
            table.update_incremental()

    def _attempt(self, table: DeltaTable, rows: "DataFrame", batch_id: int) -> Written:
        work = self._work(table, f"{stem_of(self._application, batch_id)}-{uuid.uuid4().hex[:8]}")
        if self._mode == "update":
            work = self._all_dealt(rows.sparkSession, table, work)
        report = self._run(rows, work)
        if report.added or report.removed:
            self._commit(table, work, report, [Transaction(self._application, batch_id)])
        self._last_bytes = sum(file.size for file in report.added if file.is_change)
        return Written(report.rows_added, report.rows_replaced, report.rows_left_out)

    def _work(self, table: DeltaTable, stem: str) -> Work:
        schema = _schema_of(table, self._directory)
        files = _files_of(table)
        expected = sum(file.size for file in files) + self._last_bytes
        return Work(
            table=self._directory,
            directory=self._directory,
            stem=stem,
            schema=to_arrow_schema(schema, timezone="UTC"),
            mode=self._mode,
            key=self._key,
            key_digest=digest(*(f"{name} {schema[name].dataType.simpleString()}" for name in self._key)),
            buckets=buckets_for(expected, self._cores) if files else buckets_for(1 << 62, self._cores),
            files=files,
        )

    def _all_dealt(self, spark: "SparkSession", table: DeltaTable, work: Work) -> Work:
        """So that a file is rewritten by one task only. Needed when the table has grown, or others wrote to it."""
        foreign = [file for file in work.files if not is_dealt(file, work.key_digest, work.buckets)]
        if not foreign:
            return work
        paths = [f"{self._directory}/{file.path}" for file in foreign]
        rows = spark.read.schema(_schema_of(table, self._directory)).parquet(*paths)
        report = self._run(rows, replace(work, mode="deal", files=()))
        report.removed = [file.path for file in foreign]
        self._commit(table, work, report, [], is_change=False)
        return replace(work, files=_files_of(table))

    def _run(self, rows: "DataFrame", work: Work) -> Report:
        try:
            report = job.run(rows, work, self._cores)
            if report.null_keys:
                raise null_key(self._key, report.null_keys, self._directory)
        except BaseException:
            self._discard(work)
            raise
        return report

    def _commit(
        self, table: DeltaTable, work: Work, report: Report, transactions: list[Transaction], is_change: bool = True
    ) -> None:
        unseen = [file.name for file in report.added if not is_there(self._directory, file)]
        if unseen:
            raise FileNotFoundError(
                f"An executor wrote {unseen[0]} into {self._directory}, and the driver does not see it there. "
                "The directory has to be on a file system that the driver and all executors share."
            )
        if self._key:
            transactions = [*transactions, Transaction(KEYED, table.version())]
        removals_change = is_change and self._mode == "update"
        try:
            table.create_write_transaction(
                [
                    *(_added(file, is_change and file.is_change) for file in report.added),
                    *_removed(report.removed, work.files, removals_change),
                ],
                "append",
                table.schema(),
                commit_properties=CommitProperties(app_transactions=transactions),
            )
        except CommitFailedError:
            self._discard(work)
            raise
        table.update_incremental()

    def _discard(self, work: Work) -> None:
        """What this attempt wrote. Its name is in the files' names, and in nobody else's.

        A commit may have failed after it was made. So what the table holds by now stays.
        """
        kept = {file.path for file in _files_of(DeltaTable(self._directory))}
        for path in Path(self._directory).glob(f"{work.stem}*.parquet"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _maybe_sweep(self, table: DeltaTable) -> bool:
        if table.version() % SWEEP_EVERY:
            return False
        try:
            table.vacuum(dry_run=False, full=True)
        except CommitFailedError:
            return False
        return True


def _schema_of(table: DeltaTable, name: str) -> StructType:
    """Delta writes schemas down as Spark does."""
    return schema_of_table(StructType.fromJson(json.loads(table.schema().to_json())), name)


def _files_of(table: DeltaTable) -> tuple[Held, ...]:
    adds: Any = table.get_add_actions()
    paths, sizes = adds.column("path").to_pylist(), adds.column("size_bytes").to_pylist()
    return tuple(sorted((held(path, size) for path, size in zip(paths, sizes, strict=True)), key=lambda one: one.path))


def _added(file: Any, is_change: bool) -> AddAction:
    return AddAction(file.name, file.size, {}, file.modified_ms, is_change, file.stats)


def _removed(paths: Sequence[str], files: Sequence[Held], is_change: bool) -> list[RemoveAction]:
    now_ms = int(time.time() * 1000)
    sizes = {file.path: file.size for file in files}
    return [RemoveAction(path, is_change, now_ms, sizes[path], {}) for path in paths]


def _check_empty(directory: Path) -> None:
    """A sweep would remove Parquet files that are not the table's: there must not be any to begin with."""
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.glob("*.parquet")):
        raise DoesNotFit(
            f"{directory} holds Parquet files and no Delta table. Write to another --data directory, or move them away."
        )


def _check_usable(table: DeltaTable, name: str) -> None:
    """Tables of others may have what we would not keep intact."""
    partitioned = table.metadata().partition_columns
    if partitioned:
        raise DoesNotFit(f"The table {name} is partitioned by {', '.join(partitioned)}; we write tables that are not.")
    features = {feature for feature in table.protocol().reader_features or [] if feature != "timestampNtz"}
    if features:
        raise DoesNotFit(f"The table {name} uses {', '.join(sorted(features))} of Delta, which we do not write.")
