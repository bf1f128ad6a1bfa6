"""Pipelines on Spark: topics as data frames and back, without a jar. The extra `klamm[spark]` brings what it needs."""
