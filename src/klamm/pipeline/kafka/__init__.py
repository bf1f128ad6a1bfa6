"""Blocking access to any cluster that speaks Kafka's protocol, for Spark's driver and executors."""
