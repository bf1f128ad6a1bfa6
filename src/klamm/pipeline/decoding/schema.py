"""The columns of Spark's own Kafka connector, in the Arrow types that PySpark compares them with, field by field."""

import pyarrow as pa

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", _HEADER))
TIMESTAMP = pa.timestamp("us", tz="UTC")

_COLUMNS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("timestampType", pa.int32()),
]
_WITHOUT_HEADERS = pa.schema(_COLUMNS)
_WITH_HEADERS = pa.schema([*_COLUMNS, pa.field("headers", HEADERS)])


def arrow_schema(include_headers: bool) -> pa.Schema:
    return _WITH_HEADERS if include_headers else _WITHOUT_HEADERS
