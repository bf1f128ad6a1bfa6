"""The record batch: Kafka's unit of data, which travels from producer to disk to consumer untouched.

`batch` reads and checks its header, `validation` its records, with `columns`, `walking` and `decompression`; `record`
and `builder` take it apart and put it together, `compression` and `crc` are the machinery of all, `control` holds the
batches that brokers write for themselves.
"""
