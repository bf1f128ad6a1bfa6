"""Kafka's record batches become Arrow's: a Fetch response as rows for Spark, without a Python object for each row.

`walking` goes from batch to batch and checks each, `gathering` puts some of them together. `scanning` finds where every
record starts, `varints` decodes one number of all records at once, `columns` and `headers` make the Arrow arrays.
`decoder` is the door.
"""

from klamm.pipeline.decoding.decoder import Decoder as Decoder
from klamm.pipeline.decoding.schema import arrow_schema as arrow_schema
