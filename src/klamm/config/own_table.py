"""The settings that Kafka does not have. Their names begin with `klamm.`, so that none of Kafka's is ever the same."""

OWN_SETTINGS = """
# Watching
Where this node serves /metrics, /healthz and /readyz over HTTP, as host:port. Without it, nowhere.
    +klamm.metrics.listener  string  ""  place  fixed

# Memory
How many idempotent producers a partition remembers, and a broker. Of more, the longest silent are forgotten early.
    +klamm.partition.max.producers  int  20000   >=1  fixed
    +klamm.broker.max.producers     int  100000  >=1  fixed
What members of one group may say about themselves and be given, in bytes, and of all groups of a broker.
    +klamm.group.max.bytes     long  16777216   >=1  fixed
    +klamm.groups.max.bytes    long  134217728  >=1  fixed

# What is accepted
Whether each record is looked at before it is stored: what some client could not read would stop it for ever.
    +klamm.validate.records  boolean  true  .  cluster
"""
