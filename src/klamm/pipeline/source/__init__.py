"""The Spark source `klamm`: topics as data frames, batch and stream, with the options of Spark's Kafka connector."""
