"""Klamm: Kafka's architecture in Python, speaking Kafka's own protocol."""

__version__ = "0.1.0"
