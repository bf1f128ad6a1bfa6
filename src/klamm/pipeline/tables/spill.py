"""The rows of a task, all of them at hand twice: first their keys, then whatever is to be written.

A batch that fits is kept in memory. What is beyond goes to a temporary file of Arrow's own format and is mapped, so a
task that gets more than its worker's memory (a first run over a long topic) takes disk instead.
"""

import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

IN_MEMORY_BYTES = 128 << 20


class Gathered:
    def __init__(self, batches: Iterable[pa.RecordBatch], in_memory_bytes: int = IN_MEMORY_BYTES) -> None:
        self.num_rows = 0
        self._kept: list[pa.RecordBatch] = []
        size = 0
        rest = iter(batches)
        for batch in rest:
            self.num_rows += batch.num_rows
            size += batch.nbytes
            self._kept.append(batch)
            if size > in_memory_bytes:
                self._spill(rest)

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self._kept)

    def select(self, names: list[str]) -> pa.Table:
        return pa.Table.from_batches([batch.select(names) for batch in self._kept])

    def column(self, name: str) -> pa.ChunkedArray:
        return self.select([name]).column(0)

    def _spill(self, rest: Iterator[pa.RecordBatch]) -> None:
        """The file has no name any more once it is mapped, and goes with the last row that is looked at."""
        with tempfile.NamedTemporaryFile(prefix="klamm-rows-") as file:
            writer: Any = None
            for batch in rest:
                self.num_rows += batch.num_rows
                writer = writer or pa.ipc.new_file(file, batch.schema)
                writer.write_batch(batch)
            if writer is None:
                return
            writer.close()
            file.flush()
            reader = pa.ipc.open_file(pa.memory_map(file.name))
            self._kept += [reader.get_batch(number) for number in range(reader.num_record_batches)]
