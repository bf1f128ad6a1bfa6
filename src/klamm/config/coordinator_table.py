"""The settings of the coordinators: groups, their offsets, and transactions."""

COORDINATOR_SETTINGS = """
# Classic groups
The session timeouts that members of a classic group may ask for.
    group.min.session.timeout.ms                          int      6000              .        fixed
    group.max.session.timeout.ms                          int      1800000           .        fixed
How long the first rebalance of an empty group waits for more members.
    group.initial.rebalance.delay.ms                      int      3000              .        fixed
The most members a group may have.
    group.max.size                                        int      max               >=1      fixed
    group.consumer.max.size                               int      max               >=1      fixed
Which kinds of group the coordinator serves.
    group.coordinator.rebalance.protocols  list  classic,consumer,streams  some:consumer,classic,share,streams  fixed

# Groups whose assignment the broker makes (KIP-848)
How often members of such a group report, and the bounds of what a group may set.
    group.consumer.heartbeat.interval.ms                  int      5000              >=1      fixed
    group.consumer.min.heartbeat.interval.ms              int      5000              >=1      fixed
    group.consumer.max.heartbeat.interval.ms              int      15000             >=1      fixed
A member that was silent for this long is removed, and the bounds of what a group may set.
    group.consumer.session.timeout.ms                     int      45000             >=1      fixed
    group.consumer.min.session.timeout.ms                 int      45000             >=1      fixed
    group.consumer.max.session.timeout.ms                 int      60000             >=1      fixed
Assignments of one group are at least this far apart.
    group.consumer.assignment.interval.ms                 int      1000              >=0      cluster
The ways to assign partitions, the preferred one first.
    group.consumer.assignors                              list     uniform,range     list+    fixed
Which way a group may change between the classic protocol and the newer one while it lives.
    group.consumer.migration.policy  string  bidirectional  anycase:DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL  fixed
How often the topics that match a group's pattern are looked up again.
    ~group.consumer.regex.refresh.interval.ms             int      600000            >=10000  fixed

# Offsets
A group's offsets are forgotten when it was empty for this long.
    offsets.retention.minutes                             int      10080             >=1      fixed
How often the coordinator looks for offsets that may be forgotten.
    offsets.retention.check.interval.ms                   long     600000            >=1      fixed
The most text a commit may carry with an offset.
    offset.metadata.max.bytes                             int      4096              .        fixed
How long a commit waits for its replicas.
    offsets.commit.timeout.ms                             int      5000              >=1      fixed
How the topic of the offsets is made: partitions, copies of each, file size, and the codec of its batches.
    offsets.topic.num.partitions                          int      50                >=1      fixed
    offsets.topic.replication.factor                      short    3                 >=1      fixed
    offsets.topic.segment.bytes                           int      104857600         >=1      fixed
    offsets.topic.compression.codec                       int      0                 0..4     fixed

# Transactions
The longest timeout a transactional producer may ask for.
    transaction.max.timeout.ms                            int      900000            >=1      fixed
A transactional id that was not used for this long is forgotten.
    transactional.id.expiration.ms                        int      604800000         >=1      fixed
How often the coordinator looks for transactions that ran out of time, and for ids that may be forgotten.
    transaction.abort.timed.out.transaction.cleanup.interval.ms  int      10000             >=1      fixed
    transaction.remove.expired.transaction.cleanup.interval.ms  int      3600000           >=1      fixed
How the topic of the transactions is made: partitions, copies of each, how many must be in sync, and file size.
    transaction.state.log.num.partitions                  int      50                >=1      fixed
    transaction.state.log.replication.factor              short    3                 >=1      fixed
    transaction.state.log.min.isr                         int      2                 >=1      fixed
    transaction.state.log.segment.bytes                   int      104857600         >=1      fixed
A partition asks the coordinator whether a transaction is really open before it takes the first write of it.
    transaction.partition.verification.enable             boolean  true              .        cluster
How long a broker pauses before it adds a partition to a transaction again, and the longest it goes on.
    add.partitions.to.txn.retry.backoff.ms                int      20                >=1      fixed
    add.partitions.to.txn.retry.backoff.max.ms            int      100               >=0      fixed
"""
