"""Rows of Spark into topics: format `klamm` as a place to write to, with the columns and options of Spark's connector.

    rows.write.format("klamm").option("kafka.bootstrap.servers", …).option("topic", "orders").mode("append").save()

Each task has a producer of its own (librdkafka: idempotent, acks=all) and ends when the cluster has acknowledged every
record, or fails. What Spark runs twice is written twice: at least once.
"""

from klamm.pipeline.sink.writers import batch_writer, stream_writer

__all__ = ["batch_writer", "stream_writer"]
