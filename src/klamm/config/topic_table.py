"""The settings of a topic, and the settings of the broker that stand in for those a topic does not set."""

TOPIC_SETTINGS = """
# Retention
What happens to old records: they are deleted, compacted to the last one of each key, or both.
    cleanup.policy                   list     delete      each:compact,delete  topic
How long records are kept; -1 keeps them for ever.
    retention.ms                     long     604800000   >=-1          topic
How many bytes of each partition are kept; -1 keeps them all.
    retention.bytes                  long     -1          .             topic
A tombstone is kept for this long, for readers that have yet to see it.
    delete.retention.ms              long     86400000    >=0           topic
A record is not compacted before it has this age.
    min.compaction.lag.ms            long     0           >=0           topic
A record is compacted at the latest at about this age, however clean its log is.
    max.compaction.lag.ms            long     max         >=1           topic
A log is compacted when this share of it is not compacted yet.
    min.cleanable.dirty.ratio        double   0.5         0..1          topic
A deleted log file stays on the disk for this long under another name, for readers that are still in it.
    file.delete.delay.ms             long     60000       >=0           topic

# Segments and flushing
A log is cut into files of at most this size.
    segment.bytes                    int      1073741824  >=1048576     topic
The same without a lower bound, for tests.
    ~internal.segment.bytes          int      -           .             topic
A log file is closed and the next one begun after this time, even if it is not full.
    segment.ms                       long     604800000   >=1           topic
Up to this much is taken off the rolling time, at random, so that not all logs roll at once.
    segment.jitter.ms                long     0           >=0           topic
How large one index file may become; when it is full the log rolls.
    segment.index.bytes              int      10485760    >=4           topic
The offset and time indexes get one entry for about this many bytes of records.
    index.interval.bytes             int      4096        >=0           topic
After this many records a log is flushed to the disk; with 1, an acknowledgement waits for the disk.
    flush.messages                   long     max         >=1           topic
A record is flushed to the disk at the latest after this time.
    flush.ms                         long     max         >=0           topic

# What is accepted
The largest batch a producer may send, as it is on the wire, compressed or not.
    max.message.bytes                int      1048588     >=0           topic
Records carry the time of their producer (CreateTime) or the time they were appended (LogAppendTime).
    message.timestamp.type           string   CreateTime  one:CreateTime,LogAppendTime  topic
How far a producer's time may lie behind the broker's, and how far ahead of it.
    message.timestamp.before.max.ms  long     max         >=0           topic
    message.timestamp.after.max.ms   long     3600000     >=0           topic
How batches are compressed on the disk: as the producer chose, or all of them in one way.
    compression.type                 string   producer    one:uncompressed,zstd,lz4,snappy,gzip,producer  topic
How hard the codec works when the broker itself compresses.
    compression.gzip.level           int      -1          gzip-level    topic
    compression.lz4.level            int      9           1..17         topic
    compression.zstd.level           int      3           -131072..22   topic
Whether each record is looked at before it is stored: what some client could not read would stop it for ever.
    +klamm.validate.records          boolean  true        .             topic

# Replicas
With acks=all, a write needs this many replicas in sync, the leader included.
    min.insync.replicas              int      1           >=1           topic
A replica that is out of sync may become leader when no other is left. Records can be lost that way.
    unclean.leader.election.enable   boolean  false       .             topic
Which replicas catch up at no more than the brokers' throttled rates: `*`, or partition:broker pairs.
    leader.replication.throttled.replicas    list  ""     replicas      topic
    follower.replication.throttled.replicas  list  ""     replicas      topic
"""

INERT_TOPIC_SETTINGS = """
Klamm lets a log file grow with its records.
    preallocate                              boolean  false  .         topic
Tiered storage is not there.
    local.retention.ms                       long     -2     >=-2      topic
    local.retention.bytes                    long     -2     >=-2      topic
    remote.log.copy.disable                  boolean  false  .         topic
    remote.log.delete.on.disable             boolean  false  .         topic
"""

REFUSED_TOPIC_SETTINGS = """
Tiered storage is not implemented: records stay on the broker's own disk.
    remote.storage.enable  boolean  false  .  topic
"""

# A topic setting, and what a broker calls the same: the first that is set counts. The number makes milliseconds of it.
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "klamm.validate.records": (("klamm.validate.records", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}

# The settings of a broker that stand in for one another, such as one time in three units: each with its whole family.
FAMILIES: dict[str, tuple[str, ...]] = {
    name: tuple(other for other, _ in family) for family in SYNONYMS.values() if len(family) > 1 for name, _ in family
}
