"""The settings that Kafka does not have. Their names begin with `klamm.`, so that none of Kafka's is ever the same."""

OWN_SETTINGS = """
# Watching
Where this node serves /metrics, /healthz and /readyz over HTTP, as host:port. Without it, nowhere.
    +klamm.metrics.listener  string  ""  place  fixed
"""
