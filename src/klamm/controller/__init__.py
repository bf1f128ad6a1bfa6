"""Decisions about the cluster: brokers, topics, placement, settings, producer ids."""
