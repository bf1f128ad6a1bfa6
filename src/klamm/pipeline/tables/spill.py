"""The rows of a task, all of them at hand twice: first their keys, then whatever is to be written.

A batch that fits is kept in memory. What is beyond goes to a temporary file of Arrow's own format and is mapped, so a
task that gets more than its worker's memory (a first run over a long topic) takes disk instead.
"""

import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import IO

import pyarrow as pa

IN_MEMORY_BYTES = 128 << 20


class Gathered:
    def __init__(self, batches: Iterable[pa.RecordBatch], in_memory_bytes: int = IN_MEMORY_BYTES) -> None:
        self.num_rows = 0
        self._kept: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        size, writer = 0, None
        for batch in batches:
            self.num_rows += batch.num_rows
            size += batch.nbytes
            if size <= in_memory_bytes:
                self._kept.append(batch)
                continue
            if writer is None:
                self._file = tempfile.NamedTemporaryFile(prefix="klamm-rows-")  # noqa: SIM115
                writer = pa.ipc.new_file(self._file, batch.schema)
            writer.write_batch(batch)
        if writer is not None and self._file is not None:
            writer.close()
            self._file.flush()
            with pa.memory_map(self._file.name) as mapped:
                reader = pa.ipc.open_file(mapped)
                self._kept += [reader.get_batch(number) for number in range(reader.num_record_batches)]

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self._kept)

    def select(self, names: list[str]) -> pa.Table:
        return pa.Table.from_batches([batch.select(names) for batch in self._kept])

    def column(self, name: str) -> pa.ChunkedArray:
        return self.select([name]).column(0)

    def __enter__(self) -> "Gathered":
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: object, trace: TracebackType | None) -> None:
        self._kept = []
        if self._file is not None:
            self._file.close()
