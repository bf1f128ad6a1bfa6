"""The settings of the logs on a broker: where they lie, and what a topic has that does not say otherwise.

Most have a topic setting that overrides them; `topic_table.py` lists the pairs.
"""

LOG_SETTINGS = """
# Where the data lies
The directory that holds this broker's data. log.dirs wins over log.dir.
    log.dirs                                       list     -                list+         fixed
    log.dir                                        list     /tmp/kafka-logs  list+         fixed
The recovery point is written down this often: after a crash, only what came later is scanned.
    log.flush.offset.checkpoint.interval.ms        int      60000            >=0           fixed
The start of each log is written down this often, so that deleted records stay deleted after a crash.
    log.flush.start.offset.checkpoint.interval.ms  int      60000            >=0           fixed

# Segments
A log is cut into files of at most this size.
    log.segment.bytes                              int      1073741824       >=1048576     cluster
A log file is closed and the next one begun after this time, even if it is not full. The finest unit that is set wins.
    log.roll.ms                                    long     -                .             cluster
    log.roll.hours                                 int      168              >=1           fixed
Up to this much is taken off the rolling time, at random, so that not all logs roll at once.
    log.roll.jitter.ms                             long     -                .             cluster
    log.roll.jitter.hours                          int      0                >=0           fixed
The offset and time indexes get one entry for about this many bytes of records.
    log.index.interval.bytes                       int      4096             >=0           cluster
How large one index file may become; when it is full the log rolls.
    log.index.size.max.bytes                       int      10485760         >=4           cluster
A deleted log file stays on the disk for this long under another name, for readers that are still in it.
    log.segment.delete.delay.ms                    long     60000            >=0           cluster

# Flushing
After this many records a log is flushed to the disk; with 1, an acknowledgement waits for the disk.
    log.flush.interval.messages                    long     max              >=1           cluster
A record is flushed to the disk at the latest after this time. Without it, the interval of the flush scheduler.
    log.flush.interval.ms                          long     -                .             cluster
How often logs are looked at for records whose time to be flushed has come.
    log.flush.scheduler.interval.ms                long     max              .             fixed

# Retention
How long records are kept; the finest unit that is set wins, and a negative time keeps them for ever.
    log.retention.ms                               long     -                .             cluster
    log.retention.minutes                          int      -                .             fixed
    log.retention.hours                            int      168              .             fixed
How many bytes of each partition are kept; -1 keeps them all.
    log.retention.bytes                            long     -1               .             cluster
How often logs are looked at for what may be deleted.
    log.retention.check.interval.ms                long     300000           >=1           fixed
What happens to old records: they are deleted, compacted to the last one of each key, or both.
    log.cleanup.policy                             list     delete           each:compact,delete  cluster

# Compaction
Compaction runs at all.
    log.cleaner.enable                             boolean  true             .             fixed
How long compaction rests when it found nothing to do.
    log.cleaner.backoff.ms                         long     15000            >=0           cluster
A log is compacted when this share of it is not compacted yet.
    log.cleaner.min.cleanable.ratio                double   0.5              0..1          cluster
A record is not compacted before it has this age.
    log.cleaner.min.compaction.lag.ms              long     0                >=0           cluster
A record is compacted at the latest at about this age, however clean its log is.
    log.cleaner.max.compaction.lag.ms              long     max              >=1           cluster
A tombstone is kept for this long, for readers that have yet to see it.
    log.cleaner.delete.retention.ms                long     86400000         >=0           cluster

# What is accepted
The largest batch a producer may send, as it is on the wire, compressed or not.
    message.max.bytes                              int      1048588          >=0           cluster
Records carry the time of their producer (CreateTime) or the time they were appended (LogAppendTime).
    log.message.timestamp.type                     string   CreateTime       one:CreateTime,LogAppendTime  cluster
How far a producer's time may lie behind the broker's, and how far ahead of it.
    log.message.timestamp.before.max.ms            long     max              >=0           cluster
    log.message.timestamp.after.max.ms             long     3600000          >=0           cluster
How batches are compressed on the disk: as the producer chose, or all of them in one way.
    compression.type  string  producer  one:uncompressed,zstd,lz4,snappy,gzip,producer  cluster
How hard the codec works when the broker itself compresses.
    compression.gzip.level                         int      -1               gzip-level    cluster
    compression.lz4.level                          int      9                1..17         cluster
    compression.zstd.level                         int      3                -131072..22   cluster
What a partition remembers of an idle producer, to recognise duplicates, is dropped after this time.
    producer.id.expiration.ms                      int      86400000         >=1           cluster
How often partitions look for producers that may be forgotten.
    ~producer.id.expiration.check.interval.ms      int      600000           >=1           fixed
"""
