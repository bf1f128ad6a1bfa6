"""The settings of Kafka that mean nothing to Klamm. They are accepted with a warning that gives the reason.

A name after `~` is for Kafka's own developers and not shown unless it is set. One after `+` is not in Kafka's table of
settings; it can be set while the cluster runs.
"""

INERT_SETTINGS = """
A Klamm node is one thread: it has no pools to size.
    num.network.threads                                   int      3             >=1           cluster
    num.io.threads                                        int      8             >=1           cluster
    num.replica.fetchers                                  int      1             >=1           cluster
    num.replica.alter.log.dirs.threads                    int      -             .             fixed
    num.recovery.threads.per.data.dir                     int      2             >=1           cluster
    background.threads                                    int      10            >=1           cluster
    group.coordinator.threads                             int      4             >=1           fixed
    group.coordinator.background.threads                  int      2             >=1           fixed
    log.cleaner.threads                                   int      1             >=0           cluster
Klamm keeps its own bounds for queues, caches and buffers.
    queued.max.requests                                   int      500           >=1           fixed
    socket.send.buffer.bytes                              int      102400        .             fixed
    socket.receive.buffer.bytes                           int      102400        .             fixed
    socket.listen.backlog.size                            int      50            >=1           fixed
    replica.socket.receive.buffer.bytes                   int      65536         .             fixed
    log.cleaner.dedupe.buffer.size                        long     134217728     .             cluster
    log.cleaner.io.buffer.size                            int      524288        >=0           cluster
    log.cleaner.io.buffer.load.factor                     double   0.9           .             cluster
    log.cleaner.io.max.bytes.per.second                   double   max           .             cluster
    group.coordinator.cached.buffer.max.bytes             int      1048588       >=524288      cluster
    log.preallocate                                       boolean  false         .             cluster
    max.connection.creation.rate                          int      max           >=0           cluster
    offsets.load.buffer.size                              int      5242880       >=1           fixed
    transaction.state.log.load.buffer.size                int      5242880       >=1           fixed
    early.start.listeners                                 list     -             list?         fixed
Klamm writes at once what there is, and what comes meanwhile shares the next batch and flush.
    controller.quorum.append.linger.ms                    int      25            >=0           fixed
    group.coordinator.append.linger.ms                    int      -1            >=-1          fixed
A Klamm node goes on trying for as long as it runs, and waits for an answer as long as there is a use for it.
    initial.broker.registration.timeout.ms                int      60000         .             fixed
    request.timeout.ms                                    int      30000         .             fixed
    socket.connection.setup.timeout.ms                    long     10000         .             fixed
    socket.connection.setup.timeout.max.ms                long     30000         .             fixed
Klamm looks after its logs for the first time when the interval has passed.
    ~log.initial.task.delay.ms                            long     30000         >=0           fixed
Groups have no settings of their own yet, which these would bound.
    group.consumer.min.assignment.interval.ms             int      0             >=0           fixed
    group.consumer.max.assignment.interval.ms             int      15000         >=0           fixed
Klamm wakes a waiting request when its time has come: there is no purgatory to purge.
    fetch.purgatory.purge.interval.requests               int      1000          .             fixed
    producer.purgatory.purge.interval.requests            int      1000          .             fixed
    delete.records.purgatory.purge.interval.requests      int      1             .             fixed
    share.fetch.purgatory.purge.interval.requests         int      1000          .             fixed
The controller acts when something happens, not at intervals, and writes nothing while nothing does.
    ~unclean.leader.election.interval.ms                  long     300000        >=1           fixed
    metadata.max.idle.interval.ms                         int      500           >=0           fixed
A Klamm node keeps all its data in one directory.
    metadata.log.dir                                      string   -             .             fixed
    cordoned.log.dirs                                     list     ""            list?         broker
    log.dir.failure.timeout.ms                            long     30000         >=1           fixed
Klamm's metrics are its own: there are no reporters to load.
    metric.reporters  list  org.apache.kafka.common.metrics.JmxReporter  list?  cluster
    metrics.num.samples                                   int      2             >=1           fixed
    metrics.recording.level                               string   INFO          .             fixed
    metrics.sample.window.ms                              long     30000         >=1           fixed
    kafka.metrics.reporters                               list     ""            list?         fixed
    kafka.metrics.polling.interval.secs                   int      10            >=1           fixed
    telemetry.max.bytes                                   int      1048576       >=1           fixed
    ~controller.performance.always.log.threshold.ms       long     2000          >=0           fixed
    ~controller.performance.sample.period.ms              long     60000         >=100         fixed
Quotas are not there yet.
    quota.window.num                                      int      11            >=1           fixed
    quota.window.size.seconds                             int      1             >=1           fixed
    controller.quota.window.num                           int      11            >=1           fixed
    controller.quota.window.size.seconds                  int      1             >=1           fixed
    replication.quota.window.num                          int      11            >=1           fixed
    replication.quota.window.size.seconds                 int      1             >=1           fixed
    alter.log.dirs.replication.quota.window.num           int      11            >=1           fixed
    alter.log.dirs.replication.quota.window.size.seconds  int      1             >=1           fixed
    +replica.alter.log.dirs.io.max.bytes.per.second       long     max           >=0           cluster
Share groups are not there.
    group.share.assignment.interval.ms                    int      1000          >=0           cluster
    group.share.assignors                                 list     simple        list+         fixed
    group.share.delivery.count.limit                      int      5             2..10         fixed
    group.share.heartbeat.interval.ms                     int      5000          >=1           fixed
    ~group.share.initialize.retry.interval.ms             int      30000         >=1           fixed
    group.share.max.assignment.interval.ms                int      15000         >=0           fixed
    group.share.max.delivery.count.limit                  int      10            5..25         fixed
    group.share.max.heartbeat.interval.ms                 int      15000         >=1           fixed
    group.share.max.partition.max.record.locks            int      4000          2000..10000   fixed
    group.share.max.record.lock.duration.ms               int      60000         30000..3600000  fixed
    group.share.max.session.timeout.ms                    int      60000         >=1           fixed
    group.share.max.share.sessions                        int      2000          >=1           fixed
    group.share.max.size                                  int      200           1..1000       fixed
    group.share.min.assignment.interval.ms                int      0             >=0           fixed
    group.share.min.delivery.count.limit                  int      2             2..5          fixed
    group.share.min.heartbeat.interval.ms                 int      5000          >=1           fixed
    group.share.min.partition.max.record.locks            int      100           100..2000     fixed
    group.share.min.record.lock.duration.ms               int      15000         1000..30000   fixed
    group.share.min.session.timeout.ms                    int      45000         >=1           fixed
    group.share.partition.max.record.locks                int      2000          100..10000    fixed
    ~group.share.persister.class.name  string  org.apache.kafka.server.share.persister.DefaultStatePersister  .  fixed
    group.share.record.lock.duration.ms                   int      30000         1000..3600000  fixed
    group.share.session.timeout.ms                        int      45000         >=1           fixed
    share.coordinator.append.linger.ms                    int      -1            >=-1          fixed
    share.coordinator.cached.buffer.max.bytes             int      1048588       >=524288      cluster
    ~share.coordinator.cold.partition.snapshot.interval.ms  int      300000        >=1           fixed
    share.coordinator.load.buffer.size                    int      5242880       >=1           fixed
    share.coordinator.snapshot.update.records.per.snapshot  int      500           0..500        fixed
    share.coordinator.state.topic.compression.codec       int      0             .             fixed
    share.coordinator.state.topic.min.isr                 short    2             >=1           fixed
    share.coordinator.state.topic.num.partitions          int      50            >=1           fixed
    ~share.coordinator.state.topic.prune.interval.ms      int      300000        >=1           fixed
    share.coordinator.state.topic.replication.factor      short    3             >=1           fixed
    share.coordinator.state.topic.segment.bytes           int      104857600     >=1           fixed
    share.coordinator.threads                             int      1             >=1           fixed
    share.coordinator.write.timeout.ms                    int      5000          >=1           fixed
Streams groups are not there.
    group.streams.assignment.interval.ms                  int      1000          >=0           cluster
    group.streams.heartbeat.interval.ms                   int      5000          >=1           fixed
    group.streams.initial.rebalance.delay.ms              int      3000          >=0           fixed
    group.streams.max.assignment.interval.ms              int      15000         >=0           fixed
    group.streams.max.heartbeat.interval.ms               int      15000         >=1           fixed
    group.streams.max.session.timeout.ms                  int      60000         >=1           fixed
    group.streams.max.size                                int      max           >=1           fixed
    group.streams.max.standby.replicas                    int      2             >=0           fixed
    group.streams.min.assignment.interval.ms              int      0             >=0           fixed
    group.streams.min.heartbeat.interval.ms               int      5000          >=1           fixed
    group.streams.min.session.timeout.ms                  int      45000         >=1           fixed
    group.streams.num.standby.replicas                    int      0             >=0           fixed
    group.streams.session.timeout.ms                      int      45000         >=1           fixed
Tiered storage is not there.
    remote.fetch.max.wait.ms                              int      500           >=1           cluster
    remote.list.offsets.request.timeout.ms                long     30000         >=1           cluster
    remote.log.index.file.cache.total.size.bytes          long     1073741824    >=1           cluster
    ~remote.log.index.file.cache.ttl.ms                   long     900000        >=-1          fixed
    remote.log.manager.copier.thread.pool.size            int      10            >=1           cluster
    remote.log.manager.copy.max.bytes.per.second          long     max           >=1           cluster
    remote.log.manager.copy.quota.window.num              int      11            >=1           fixed
    remote.log.manager.copy.quota.window.size.seconds     int      1             >=1           fixed
    remote.log.manager.expiration.thread.pool.size        int      10            >=1           cluster
    remote.log.manager.fetch.max.bytes.per.second         long     max           >=1           cluster
    remote.log.manager.fetch.quota.window.num             int      11            >=1           fixed
    remote.log.manager.fetch.quota.window.size.seconds    int      1             >=1           fixed
    remote.log.manager.follower.thread.pool.size          int      2             >=1           cluster
    remote.log.manager.task.interval.ms                   long     30000         >=1           fixed
    ~remote.log.manager.task.retry.backoff.max.ms         long     30000         >=1           fixed
    ~remote.log.manager.task.retry.backoff.ms             long     500           >=1           fixed
    ~remote.log.manager.task.retry.jitter                 double   0.2           0..0.5        fixed
    remote.log.manager.thread.pool.size                   int      2             >=1           fixed
    remote.log.metadata.custom.metadata.max.bytes         int      128           >=0           fixed
    remote.log.metadata.manager.class.name                string \
        org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  nonempty  fixed
    remote.log.metadata.manager.class.path                string   -             .             fixed
    remote.log.metadata.manager.impl.prefix               string   rlmm.config.  nonempty      fixed
    remote.log.metadata.manager.listener.name             string   -             nonempty      fixed
    remote.log.reader.max.pending.tasks                   int      100           >=1           fixed
    remote.log.reader.threads                             int      10            >=1           cluster
    remote.log.storage.manager.class.name                 string   -             nonempty      fixed
    remote.log.storage.manager.class.path                 string   -             .             fixed
    remote.log.storage.manager.impl.prefix                string   rsm.config.   nonempty      fixed
    log.local.retention.ms                                long     -2            >=-2          cluster
    log.local.retention.bytes                             long     -2            >=-2          cluster
    follower.fetch.last.tiered.offset.enable              boolean  false         .             cluster
Two-phase commit of transactions is not there.
    transaction.two.phase.commit.enable                   boolean  false         .             fixed
Kafka's controllers of this version do not use it either.
    controller.socket.timeout.ms                          int      30000         .             fixed
    connection.failed.authentication.delay.ms             int      100           >=0           fixed
Settings for Kafka's own tests and development.
    ~internal.metadata.delete.delay.millis                long     60000         .             fixed
    ~internal.metadata.log.segment.bytes                  int      -             .             fixed
    ~internal.metadata.max.batch.size.in.bytes            int      8388608       .             fixed
    ~server.max.startup.time.ms                           long     max           >=0           fixed
    ~unstable.api.versions.enable                         boolean  false         .             fixed
    ~unstable.feature.versions.enable                     boolean  false         .             fixed
"""
