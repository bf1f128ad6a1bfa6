"""The settings of a cluster: its metadata quorum, how brokers stay in it, and how replicas follow their leaders."""

CLUSTER_SETTINGS = """
# The metadata quorum
The controllers of a cluster with a fixed quorum, as id@host:port. Without it or bootstrap servers, this node alone.
    controller.quorum.voters                         list     ""          voters     fixed
Where to ask for the controllers of a cluster whose quorum may change, as host:port.
    controller.quorum.bootstrap.servers              list     ""          servers    fixed
A follower of the quorum that could not fetch for this long calls an election.
    controller.quorum.fetch.timeout.ms               int      2000        >=0        fixed
A candidate that has not won after this time tries again.
    controller.quorum.election.timeout.ms            int      1000        >=0        fixed
The most that a candidate waits, at random, before it tries again.
    controller.quorum.election.backoff.max.ms        int      1000        >=0        fixed
How long a node of the quorum waits for another one's answer, and how long it pauses before it asks again.
    controller.quorum.request.timeout.ms             int      2000        >=0        fixed
    controller.quorum.retry.backoff.ms               int      20          >=0        fixed
How many bytes of the metadata log, or of a snapshot of it, are fetched at a time.
    controller.quorum.fetch.max.bytes                int      1048576     >=1        fixed
    controller.quorum.fetch.snapshot.max.bytes       int      1048576     >=1        fixed

# The metadata log
The metadata log is cut into files of at most this size, and at the latest after this time.
    metadata.log.segment.bytes                       int      1073741824  >=8388608  fixed
    metadata.log.segment.ms                          long     604800000   .          fixed
A snapshot of the metadata is taken when this much was written since the last one, or after this time.
    metadata.log.max.record.bytes.between.snapshots  long     20971520    >=1        fixed
    metadata.log.max.snapshot.interval.ms            long     3600000     >=0        fixed
How much of the metadata log and of its snapshots is kept, and for how long.
    metadata.max.retention.bytes                     long     104857600   .          fixed
    metadata.max.retention.ms                        long     604800000   .          fixed

# Brokers and their controller
How often a broker tells the controller that it is alive.
    broker.heartbeat.interval.ms                     int      500         .          fixed
A broker that was silent for this long is fenced, and its partitions get other leaders.
    broker.session.timeout.ms                        int      3000        .          fixed
Leadership goes back to the preferred replicas by itself as soon as they are in sync again.
    auto.leader.rebalance.enable                     boolean  true        .          fixed
How often the controller looks whether leadership should go back to preferred replicas.
    leader.imbalance.check.interval.seconds          long     5           >=1        fixed

# Replicas
With acks=all, a write needs this many replicas in sync, the leader included.
    min.insync.replicas                              int      1           >=1        cluster
A replica that is out of sync may become leader when no other is left. Records can be lost that way.
    unclean.leader.election.enable                   boolean  false       .          cluster
A follower that has not caught up with its leader for this long leaves the in-sync replicas.
    replica.lag.time.max.ms                          long     30000       .          fixed
What a follower asks for: how long a fetch may wait, how little is worth an answer, and how much it takes.
    replica.fetch.wait.max.ms                        int      500         .          fixed
    replica.fetch.min.bytes                          int      1           .          fixed
    replica.fetch.max.bytes                          int      1048576     >=0        fixed
    replica.fetch.response.max.bytes                 int      10485760    >=0        fixed
How long a follower rests after a failed fetch.
    replica.fetch.backoff.ms                         int      1000        >=0        fixed
How long a follower waits for its leader's answer before it dials again.
    replica.socket.timeout.ms                        int      30000       .          fixed
How often high watermarks are written to the disk.
    replica.high.watermark.checkpoint.interval.ms    long     5000        .          fixed
How a consumer's replica is chosen: the leader, or with Kafka's RackAwareReplicaSelector one in the consumer's rack.
    replica.selector.class                           string   -           .          fixed
Bytes a second for the replicas that a topic names as throttled: what leaders send, and what followers take.
    +leader.replication.throttled.rate               long     max         >=0        cluster
    +follower.replication.throttled.rate             long     max         >=0        cluster
"""
