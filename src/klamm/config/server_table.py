"""The settings of a node as a server: who it is, where it listens, how much it takes, what new topics get.

A table is read by `tables.py`: a sentence, then the settings it describes with their kind, default, rule (`rules.py`)
and how they may be altered while the cluster runs.
"""

SERVER_SETTINGS = """
# Who this node is
The id of this node, unique in its cluster. broker.id is its older name: if both are set they must agree.
    node.id                                    int      !                 >=0           fixed
    broker.id                                  int      -1                .             fixed
What this node does: hold partitions (broker), vote on the cluster's metadata (controller), or both.
    process.roles                              list     broker,controller  some:broker,controller  fixed
The rack, zone or host group this broker stands in. Replicas of a partition are spread over racks.
    broker.rack                                string   -                 .             fixed

# Where it listens
Where this node listens, as NAME://host:port. Without a host it listens on every interface.
    listeners                                  list     PLAINTEXT://127.0.0.1:9092  list+         fixed
The addresses that clients are told to dial. Without it, those that the node listens on.
    advertised.listeners                       list     -                 list+         fixed
Which security protocol each listener name speaks. PLAINTEXT is the only one there is yet.
    listener.security.protocol.map             string \
        SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  .  fixed
The listener over which brokers talk to each other: by its name, or by the protocol it speaks.
    inter.broker.listener.name                 string   -                 .             fixed
    security.inter.broker.protocol             string  PLAINTEXT  one:PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL  fixed
The listeners of the metadata quorum. Clients are not served there.
    controller.listener.names                  list     -                 list+         fixed

# Connections and requests
How many connections are held at once, in all.
    max.connections                            int      max               >=0           cluster
How many connections one address may hold, and exceptions to it as host:count,host:count.
    max.connections.per.ip                     int      max               >=0           cluster
    max.connections.per.ip.overrides           string   ""                .             cluster
A connection that was idle for this long is closed. -1 never closes one.
    connections.max.idle.ms                    long     600000            .             fixed
A request larger than this closes its connection before anything is allocated for it.
    socket.request.max.bytes                   int      104857600         >=1           fixed
How many bytes of requests the node holds before it stops reading from its connections. -1 leaves it to Klamm.
    queued.max.request.bytes                   long     -1                .             fixed
The most bytes one fetch returns, whatever the client asked for; the first batch is returned in any case.
    fetch.max.bytes                            int      57671680          >=1024        fixed
How many fetch sessions are remembered, so that a consumer need not repeat its partitions in every request.
    max.incremental.fetch.session.cache.slots  int      1000              >=0           fixed
How many partitions one answer about topics lists before the client has to ask for the next page.
    max.request.partition.size.limit           int      2000              >=1           fixed
Leaders are moved to other brokers before this one stops.
    controlled.shutdown.enable                 boolean  true              .             fixed

# New topics
How many partitions a topic gets when its creator does not say.
    num.partitions                             int      1                 >=1           fixed
How many copies of each partition a topic gets when its creator does not say.
    default.replication.factor                 int      1                 .             fixed
A topic that a client asks for is created when it is not there.
    auto.create.topics.enable                  boolean  true              .             fixed
Topics may be deleted.
    delete.topic.enable                        boolean  true              .             fixed
"""
