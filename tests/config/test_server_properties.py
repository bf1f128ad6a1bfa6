"""Real files of real brokers: what they set works, warns, or is refused with a line that helps."""

import pytest

from klamm.config import BrokerConfig, ConfigError, Listener, parse_properties

# The keys and values of the file that Kafka 4 ships for a node that is broker and controller.
KRAFT = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

# One of three brokers as people run them: separate controllers, an outer and an inner listener, racks.
BROKER_OF_THREE = """
process.roles = broker
node.id = 11
controller.quorum.voters = 1@c1.example:9093,2@c2.example:9093,3@c3.example:9093
controller.listener.names = CONTROLLER
listeners = INNER://0.0.0.0:9094, OUTER://0.0.0.0:9092
advertised.listeners = INNER://b11.inner.example:9094, OUTER://b11.example:9092
listener.security.protocol.map = INNER:PLAINTEXT,OUTER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name = INNER
broker.rack = zone-a
log.dirs = /var/lib/kafka
default.replication.factor = 3
min.insync.replicas = 2
replica.selector.class = org.apache.kafka.common.replica.RackAwareReplicaSelector
"""


def of(text: str, **overrides: str) -> BrokerConfig:
    return BrokerConfig.from_properties(parse_properties(text), {k.replace("_", "."): v for k, v in overrides.items()})


def problems(text: str, **overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        of(text, **overrides)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def test_the_file_kafka_ships_loads_and_warns_of_what_means_nothing_here() -> None:
    config = of(KRAFT)
    one_thread = "has no effect. A Klamm node is one thread: it has no pools to size."
    own_bounds = "has no effect. Klamm keeps its own bounds for queues, caches and buffers."
    assert config.warnings == [
        f"num.network.threads (line 10) {one_thread}",
        f"num.io.threads (line 11) {one_thread}",
        f"socket.send.buffer.bytes (line 12) {own_bounds}",
        f"socket.receive.buffer.bytes (line 13) {own_bounds}",
        f"num.recovery.threads.per.data.dir (line 17) {one_thread}",
        "share.coordinator.state.topic.replication.factor (line 19) has no effect. Share groups are not there.",
        "share.coordinator.state.topic.min.isr (line 20) has no effect. Share groups are not there.",
    ]
    assert config.node_id == config.integer("broker.id") == 1
    assert config.is_broker and config.is_controller
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.controller_listeners == (Listener("CONTROLLER", "", 9093),)
    assert config.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092),)
    assert config.log_dir == "/tmp/kraft-combined-logs"
    assert config.integer("offsets.topic.replication.factor") == 1


def test_one_of_three_brokers_with_controllers_of_their_own() -> None:
    config = of(BROKER_OF_THREE)
    assert config.warnings == []
    assert config.is_broker and not config.is_controller
    assert config.rack == "zone-a"
    assert config.inter_broker_listener == "INNER"
    assert [voter[0] for voter in config.voters] == [1, 2, 3]
    assert config.voters[0] == (1, "c1.example", 9093)
    assert [str(listener) for listener in config.advertised_listeners] == [
        "INNER://b11.inner.example:9094",
        "OUTER://b11.example:9092",
    ]


def test_a_file_of_the_time_of_zookeeper_warns_of_what_is_gone() -> None:
    config = of("broker.id=7\nzookeeper.connect=zk:2181\ninter.broker.protocol.version=3.8\nlog.dirs=/data\n")
    assert config.node_id == 7
    assert config.warnings == [
        "zookeeper.connect (line 2) is ignored. Kafka 4 has no ZooKeeper, and neither has Klamm.",
        "inter.broker.protocol.version (line 3) is ignored. Kafka 4 has dropped it.",
    ]


def test_nothing_but_a_number_is_a_whole_cluster_on_loopback() -> None:
    config = of("", node_id="0")
    assert config.is_broker and config.is_controller and config.voters == ()
    assert config.listeners == config.advertised_listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.listeners[0].is_loopback
    assert config.warnings == []


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("log.retention.hour", "log.retention.hours"),
        ("num.partition", "num.partitions"),
        ("log.dris", "log.dirs"),
        ("advertised.listener", "advertised.listeners"),
        ("auto.create.topic.enable", "auto.create.topics.enable"),
        ("min.insync.replica", "min.insync.replicas"),
        ("LOG.SEGMENT.BYTES", "log.segment.bytes"),
        ("num_partitions", "num.partitions"),
        ("ssl.keystore.locaton", "ssl.keystore.location"),
        ("retention.ms", "log.retention.ms"),
        ("max.message.bytes", "message.max.bytes"),
        ("offset.topic.replication.factor", "offsets.topic.replication.factor"),
    ],
)
def test_a_mistyped_key_is_refused_with_the_nearest_right_name(mistyped: str, meant: str) -> None:
    assert problems(f"node.id=0\n{mistyped}=1\n") == [
        f"{mistyped} (line 2) is not a setting of Kafka 4.3; did you mean {meant}?"
    ]


def test_a_key_that_resembles_nothing_is_refused_without_a_guess() -> None:
    assert problems("node.id=0\nqwertz=1\n") == ["qwertz (line 2) is not a setting of Kafka 4.3"]


def test_every_problem_is_told_at_once_and_secrets_are_not() -> None:
    text = """
node.id=minus
num.partitions=0
log.message.timestamp.type=whenever
auto.create.topics.enable=yes
ssl.keystore.password=hunter2
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
log.cleanup.polcy=compact
"""
    assert problems(text) == [
        "node.id (line 2) does not take 'minus'; it takes a whole number (32 bits) of at least 0",
        "num.partitions (line 3) does not take '0'; it takes a whole number (32 bits) of at least 1",
        "log.message.timestamp.type (line 4) does not take 'whenever'; it takes one of CreateTime, LogAppendTime",
        "auto.create.topics.enable (line 5) does not take 'yes'; it takes true or false",
        "ssl.keystore.password (line 6) is refused. TLS is not implemented yet:"
        " remove the ssl settings, and keep the listeners inside a network you trust.",
        "authorizer.class.name (line 7) is refused. Authorization is not implemented yet:"
        " everyone who reaches a listener may do everything.",
        "super.users (line 8) is refused. Authorization is not implemented yet:"
        " everyone who reaches a listener may do everything.",
        "log.cleanup.polcy (line 9) is not a setting of Kafka 4.3; did you mean log.cleanup.policy?",
    ]


def test_a_security_setting_that_promises_nothing_only_warns() -> None:
    config = of("node.id=0\nauthorizer.class.name=\nssl.client.auth=none\nsecurity.inter.broker.protocol=PLAINTEXT\n")
    assert [warning.split(" ")[0] for warning in config.warnings] == ["authorizer.class.name", "ssl.client.auth"]


@pytest.mark.parametrize(
    "line",
    [
        "listener.name.outer.ssl.keystore.location=/x",
        "listener.name.outer.scram-sha-256.sasl.jaas.config=x",
        "sasl.enabled.mechanisms=PLAIN",
        "delegation.token.secret.key=x",
        "principal.builder.class=com.example.Builder",
        "config.providers=file",
        "create.topic.policy.class.name=com.example.Policy",
        "remote.log.storage.system.enable=true",
        "connections.max.reauth.ms=1000",
    ],
)
def test_what_would_be_dangerous_to_ignore_is_refused(line: str) -> None:
    (problem,) = problems(f"node.id=0\n{line}\n")
    assert problem.startswith(f"{line.partition('=')[0]} (line 2) is refused. ")


def test_a_limit_for_one_listener_is_known_but_has_no_effect() -> None:
    config = of("node.id=0\nlistener.name.outer.max.connections=5\nlog4j.rootLogger=INFO\n")
    assert config.warnings == [
        "listener.name.outer.max.connections (line 2) has no effect. All listeners share one setting.",
        "log4j.rootLogger (line 3) is ignored. Logging is not set up by this file.",
    ]
    (problem,) = problems("node.id=0\nlistener.name.outer.max.connection=5\n")
    assert "is not a setting" in problem


def test_a_key_that_is_set_twice_counts_the_last_time_and_warns() -> None:
    config = of("node.id=0\nnum.partitions=1\nnum.partitions=5\n")
    assert config.integer("num.partitions") == 5
    assert config.warnings == ["num.partitions is set in line 2 and again in line 3, which counts"]


def test_what_is_given_beside_the_file_counts_more_also_under_another_name() -> None:
    config = of(
        "broker.id=1\nlog.dirs=/file\nlog.retention.ms=5\nnum.partitions=2\n",
        node_id="4",
        log_dir="/given",
        log_retention_hours="1",
        num_partitions="9",
    )
    assert config.node_id == 4
    assert config.log_dir == "/given"
    assert config.topic_defaults["retention.ms"] == 3_600_000
    assert config.integer("num.partitions") == 9
