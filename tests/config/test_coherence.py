"""Settings that are right one by one and wrong together."""

import pytest

from klamm.config import BrokerConfig, ConfigError


def problems(**settings: str) -> list[str]:
    overrides = {"node.id": "1"} | {name.replace("_", "."): text for name, text in settings.items()}
    try:
        BrokerConfig.from_properties((), overrides)
    except ConfigError as error:
        return error.problems
    return []


def test_a_node_without_a_number_is_nobody() -> None:
    with pytest.raises(ConfigError, match=r"node.id is missing: every node needs a number of its own"):
        BrokerConfig.from_properties()


def test_the_two_names_of_a_node_agree() -> None:
    assert problems(broker_id="1") == []
    assert problems(broker_id="2") == ["node.id (1) and broker.id (2) must be the same"]
    with pytest.raises(ConfigError, match=r"broker.id is -1: nodes are numbered from 0"):
        BrokerConfig.from_properties((), {"broker.id": "-1"})


def test_only_plaintext_is_there() -> None:
    (problem,) = problems(listeners="SSL://h:9093,PLAINTEXT://h:9092")
    assert problem.startswith("listeners: SSL wants SSL, which is not implemented yet")
    (problem,) = problems(
        listeners="PLAINTEXT://h:1,OUT://h:2", listener_security_protocol_map="OUT:SASL_SSL,PLAINTEXT:PLAINTEXT"
    )
    assert problem.startswith("listeners: OUT wants SASL_SSL, which is not implemented yet")
    assert problems(security_inter_broker_protocol="SSL")[0].startswith(
        "security.inter.broker.protocol: only PLAINTEXT"
    )


@pytest.mark.parametrize("text", ["h:9092", "PLAINTEXT://h", "PLAINTEXT://h:x", "PLAINTEXT://h:70000", "://h:1"])
def test_a_listener_has_a_name_a_host_and_a_port(text: str) -> None:
    assert problems(listeners=text)[0] == f"listeners: {text!r} is not a listener; write NAME://host:port"


def test_listeners_have_names_protocols_and_ports_of_their_own() -> None:
    (problem,) = problems(listeners="PLAINTEXT://a:1,PLAINTEXT://b:2")
    assert "the listener PLAINTEXT is there twice" in problem
    (problem,) = problems(listeners="PLAINTEXT://:1,CONTROLLER://h:1", controller_listener_names="CONTROLLER")
    assert problem == "listeners: PLAINTEXT://:1 and CONTROLLER://h:1 cannot share port 1"
    assert problems(listeners="PLAINTEXT://a:1,CONTROLLER://b:1", controller_listener_names="CONTROLLER") == []
    assert "add OUT:PLAINTEXT to listener.security.protocol.map" in problems(listeners="PLAINTEXT://h:1,OUT://h:2")[0]


def test_ipv6_addresses_stand_in_brackets() -> None:
    config = BrokerConfig.from_properties((), {"node.id": "1", "listeners": "PLAINTEXT://[::1]:9092"})
    assert config.listeners[0].host == "::1" and config.listeners[0].is_loopback
    assert str(config.listeners[0]) == "PLAINTEXT://[::1]:9092"


def test_clients_are_told_an_address_they_can_dial() -> None:
    (problem,) = problems(listeners="PLAINTEXT://0.0.0.0:9092")
    assert problem.startswith("advertised.listeners: clients cannot dial 0.0.0.0")
    assert problems(listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://b1:9092") == []
    assert "OUT is not in listeners, which has PLAINTEXT" in "".join(
        problems(
            listeners="PLAINTEXT://h:1",
            advertised_listeners="PLAINTEXT://h:1,OUT://h:2",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT",
        )
    )


def test_brokers_talk_over_a_listener_that_is_there() -> None:
    (problem,) = problems(inter_broker_listener_name="INNER")
    assert "brokers would talk over INNER, which is not advertised; choose one of PLAINTEXT" in problem


def test_a_quorum_and_its_voters_agree_about_this_node() -> None:
    controller = {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2", "controller_listener_names": "CONTROLLER"}
    assert problems(controller_quorum_voters="1@h:2", **controller) == []
    assert "does not name this node (1)" in problems(controller_quorum_voters="2@h:2", **controller)[0]
    assert (
        "names this node (1), which is not a controller"
        in problems(process_roles="broker", controller_quorum_voters="1@h:2", controller_listener_names="CONTROLLER")[0]
    )
    assert "needs controller.quorum.voters" in problems(process_roles="broker")[0]
    assert problems(controller_listener_names="CONTROLLER") == [
        "controller.listener.names: CONTROLLER is not in listeners"
    ]
    assert "it takes a list of id@host:port" in problems(controller_quorum_voters="h:2")[0]


def test_a_broker_needs_a_listener_that_is_not_the_quorums() -> None:
    assert problems(listeners="CONTROLLER://h:1", controller_listener_names="CONTROLLER") == [
        "listeners: a broker needs one that is not in controller.listener.names"
    ]


def test_one_node_has_one_directory() -> None:
    assert "a Klamm node uses one" in problems(log_dirs="/a,/b")[0]


def test_numbers_that_contradict_each_other() -> None:
    assert problems(broker_heartbeat_interval_ms="5000") == [
        "broker.heartbeat.interval.ms (5000) must not be more than broker.session.timeout.ms (3000)"
    ]
    for name, least in (("session.timeout", 45_000), ("heartbeat.interval", 5_000)):
        for bound, value in (("min", least + 1), ("max", least - 1)):
            setting = f"group.consumer.{bound}.{name}.ms"
            assert any(setting in problem for problem in problems(**{setting.replace(".", "_"): str(value)}))
    assert problems(group_consumer_max_heartbeat_interval_ms="5001") == []
    assert problems(group_consumer_max_session_timeout_ms="45001") == []
    assert problems(queued_max_request_bytes="5")[0].startswith("queued.max.request.bytes must not be less than")
    assert problems(log_retention_hours="0")[0].startswith("log.retention must be -1")
    assert problems(log_retention_ms="0", log_retention_hours="5")[0].startswith("log.retention must be -1")
    assert problems(log_roll_ms="0") == ["log.roll.ms must be at least 1"]
    assert "nobody is excepted" in problems(max_connections_per_ip="0")[0]
    assert problems(max_connections_per_ip="0", max_connections_per_ip_overrides="10.0.0.1:5") == []
    assert "'h:x' is not host:count" in problems(max_connections_per_ip_overrides="h:x")[0]
    assert "are known here" in problems(replica_selector_class="com.example.Selector")[0]
