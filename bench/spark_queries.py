"""One session with all formats, and the query that is measured: everything in a topic, in equal triggers, to a sink."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.systems import ROOT, NotAvailableError

FORMATS = ("klamm", "kafka")
FLOOR = "floor"
SINKS = ("noop", "delta")


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    codec: str
    value_bytes: int
    records: int
    partitions: int
    triggers: int

    @property
    def records_a_trigger(self) -> int:
        return self.records // self.triggers


class Session:
    """Of the shape the pipelines run in: all cores of this machine, Klamm's own settings."""

    def __init__(self) -> None:
        directory = Path(os.environ.get("KLAMM_SPARK_JARS", ROOT / ".jars" / "spark"))
        jars = sorted(map(str, directory.glob("*.jar")))
        if not any("spark-sql-kafka" in jar for jar in jars):
            raise NotAvailableError(
                "no Spark connector in .jars/spark: run tools/spark/fetch.sh, or set KLAMM_SPARK_JARS"
            )
        # The workers import the floor from here.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        from bench.spark_floor import Floor
        from klamm.pipeline.registration import register
        from klamm.pipeline.session import new_session

        self._spark = new_session("bench", settings={"spark.jars": ",".join(jars), "spark.driver.memory": "2g"})
        register(self._spark)
        self._spark.dataSource.register(Floor)

    def records_a_second(self, kind: str, topic: Topic, sink: str, where: dict[str, str], scratch: Path) -> float:
        """Over all triggers, from the question what is new to the commit; starting the query is not counted."""
        shutil.rmtree(scratch, ignore_errors=True)
        source = self._spark.readStream.format(kind).options(**_options(kind, topic, where)).load()
        writer = source.writeStream.option("checkpointLocation", str(scratch / "checkpoint")).trigger(availableNow=True)
        if sink == "delta":
            query = self._into_table(writer, scratch)
        else:
            query = writer.format("noop").start()
        query.awaitTermination()
        progress = [each for each in query.recentProgress if each.numInputRows]
        read = sum(each.numInputRows for each in progress)
        if read != topic.records or len(progress) != topic.triggers:
            raise AssertionError(f"{kind} read {read} records of {topic.name} in {len(progress)} triggers")
        shutil.rmtree(scratch)
        return float(read / sum(each.durationMs["triggerExecution"] for each in progress) * 1000)

    def close(self) -> None:
        self._spark.stop()

    def _into_table(self, writer: Any, scratch: Path) -> Any:
        from klamm.pipeline.tables import open_table

        table = open_table(self._spark, str(scratch / "table"), application="bench")
        return writer.foreachBatch(lambda rows, number: table.write(rows, number)).start()


def _options(kind: str, topic: Topic, where: dict[str, str]) -> dict[str, str]:
    size = {"maxOffsetsPerTrigger": str(topic.records_a_trigger)}
    if kind == FLOOR:
        each = str(topic.records // topic.partitions)
        return {
            **size, "topic": topic.name, "partitions": str(topic.partitions), "records": each,
            "directory": where["directory"],
        }  # fmt: skip
    return {
        **size, "kafka.bootstrap.servers": where["address"], "subscribe": topic.name, "startingOffsets": "earliest",
    }  # fmt: skip
