"""Spark's own Kafka connector beside format `klamm`: on the same cluster, with the same options, the same rows."""
