"""A plain directory of Parquet files that any tool reads, written exactly once all the same. Append and ignore only.

Executors write into a hidden directory, the driver moves the files into place under names that tell application and
batch, and then writes down that the batch is done, by an atomic rename. A batch that was not written down is run again,
and what is in place of it is removed first. Who reads at that moment may see a part of a batch; Delta tables have no
such moment. One driver at a time: nothing here notices a second one.

Files are not merged: to replace some by one cannot be made atomic for a reader of a directory. Choose triggers that are
not too small, or Delta.
"""

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from klamm.pipeline.tables import job
from klamm.pipeline.tables.fitting import DoesNotFit, added_columns, check_key, null_key, schema_of_table
from klamm.pipeline.tables.places import Held, buckets_for, digest, held, stem_of
from klamm.pipeline.tables.work import Report, Work, Written
from klamm.pipeline.tables.writing import is_there

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS, STAGING, SCHEMA = "_klamm", "_staging", "schema.json"


class ParquetSink:
    def __init__(
        self, spark: "SparkSession", directory: str, key: tuple[str, ...], mode: str, application: str
    ) -> None:
        self._directory = Path(directory)
        self._key = key
        self._mode = mode
        self._application = application
        self._cores = spark.sparkContext.defaultParallelism
        self._done = self._directory / OURS / f"{stem_of(application, 0)}.json"

    def __repr__(self) -> str:
        return f"<parquet {self._directory} {self._mode} {','.join(self._key)}>"

    def write(self, rows: "DataFrame", batch_id: int) -> Written:
        """Exactly once for this application and batch. To be called from `foreachBatch`."""
        schema = schema_of_table(rows.schema, str(self._directory))
        check_key(self._key, schema, str(self._directory))
        if self._is_done(batch_id):
            return Written(was_done=True)
        table = self._opened(rows.sparkSession, schema)
        stem = stem_of(self._application, batch_id)
        self._remove_what_is_there(stem)
        staging = self._directory / STAGING / f"{stem}-{uuid.uuid4().hex[:8]}"
        staging.mkdir(parents=True)
        try:
            report = self._run(rows, self._work(table, stem, staging))
            for file in report.added:
                (staging / file.name).rename(self._directory / file.name)
            _write_down(self._done, {"application": self._application, "batch": batch_id})
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return Written(report.rows_added, 0, report.rows_left_out)

    def new_columns(self, rows: StructType) -> list[str]:
        note = self._directory / OURS / SCHEMA
        if note.exists():
            there = StructType.fromJson(json.loads(note.read_text()))
            added_columns(there, schema_of_table(rows, str(self._directory)), str(self._directory), may_grow=False)
        return []

    def _is_done(self, batch_id: int) -> bool:
        try:
            return bool(json.loads(self._done.read_text())["batch"] >= batch_id)
        except FileNotFoundError:
            return False

    def _opened(self, spark: "SparkSession", schema: StructType) -> StructType:
        """The table's schema, which the first batch leaves beside it."""
        note = self._directory / OURS / SCHEMA
        if note.exists():
            there = StructType.fromJson(json.loads(note.read_text()))
        elif (self._directory / "_delta_log").exists():
            raise DoesNotFit(
                f'{self._directory} is a Delta table. Write to another --data directory, or use format="delta".'
            )
        else:
            self._directory.mkdir(parents=True, exist_ok=True)
            found = self._files()
            there = (
                spark.read.parquet(*(f"{self._directory}/{file.path}" for file in found)).schema if found else schema
            )
            there = schema_of_table(there, str(self._directory))
            _write_down(note, there.jsonValue())
        added_columns(there, schema, str(self._directory), may_grow=False)
        return there

    def _remove_what_is_there(self, stem: str) -> None:
        """Of an earlier run of this batch that did not come to its end."""
        for path in self._directory.glob(f"{stem}.*.parquet"):
            path.unlink(missing_ok=True)
        for path in self._directory.glob(f"{STAGING}/{stem}-*"):
            shutil.rmtree(path, ignore_errors=True)

    def _work(self, schema: StructType, stem: str, staging: Path) -> Work:
        files = self._files()
        return Work(
            table=str(self._directory),
            directory=str(staging),
            stem=stem,
            schema=to_arrow_schema(schema, timezone="UTC"),
            mode=self._mode,
            key=self._key,
            key_digest=digest(*(f"{name} {schema[name].dataType.simpleString()}" for name in self._key)),
            buckets=buckets_for(sum(file.size for file in files) if files else 1 << 62, self._cores),
            files=files,
            may_merge=False,
        )

    def _run(self, rows: "DataFrame", work: Work) -> Report:
        report = job.run(rows, work, self._cores)
        if report.null_keys:
            raise null_key(self._key, report.null_keys, str(self._directory))
        unseen = [file.name for file in report.added if not is_there(work.directory, file)]
        if unseen:
            raise FileNotFoundError(
                f"An executor wrote {unseen[0]} into {work.directory}, and the driver does not see it there. "
                "The directory has to be on a file system that the driver and all executors share."
            )
        return report

    def _files(self) -> tuple[Held, ...]:
        """What a reader of the directory sees, in order of name."""
        with os.scandir(self._directory) as entries:
            found = [entry for entry in entries if entry.name.endswith(".parquet") and entry.name[0] not in "._"]
            return tuple(sorted((held(one.name, one.stat().st_size) for one in found), key=lambda one: one.path))


def _write_down(path: Path, what: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    beside.write_text(json.dumps(what))
    beside.replace(path)
