"""Kafka's own tools, and Kafka's own client, on a cluster of three brokers: of Klamm, or of Apache Kafka itself."""
