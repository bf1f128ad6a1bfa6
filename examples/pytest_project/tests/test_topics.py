"""Topics and their settings, and clusters made for one test."""

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from shop import Orders, read, values


def test_compaction_is_set_and_can_be_read(kafka, topic_name):
    kafka.create_topic(topic_name, cleanup_policy="compact", min_cleanable_dirty_ratio=0.1)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, topic_name)
    settings = admin.describe_configs([resource])[resource].result(timeout=30)
    assert settings["cleanup.policy"].value == "compact"
    assert float(settings["min.cleanable.dirty.ratio"].value) == 0.1


@pytest.mark.klamm(brokers=1, settings={"num.partitions": 4})
def test_a_broker_of_our_own_with_other_settings(klamm_embedded):
    servers = klamm_embedded.bootstrap_servers
    orders = Orders(servers, "made-by-itself")
    orders.send("two apples")
    orders.wait()
    assert values(read(servers, "made-by-itself", 1, range(4))) == ["two apples"]
    topic = AdminClient({"bootstrap.servers": servers}).list_topics("made-by-itself", timeout=30)
    assert len(topic.topics["made-by-itself"].partitions) == 4
