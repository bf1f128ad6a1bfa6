"""The guarantees as experiments: each starts a real cluster, does something to it, measures, and says what it means."""
