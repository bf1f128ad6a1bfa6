"""What is sent is what is read: values, keys, headers, timestamps, partitions."""

from collections import defaultdict

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from shop import Orders, read, values

LONG_AGO_MS = 1_000_000_000_000


def test_what_is_sent_is_read(kafka, topic):
    orders = Orders(kafka.bootstrap_servers, topic)
    orders.send("two apples", customer="Frieda")
    orders.wait()
    (record,) = read(kafka.bootstrap_servers, topic, 1)
    assert (record.key(), record.value(), record.offset()) == (b"Frieda", b"two apples", 0)


def test_headers_stay_in_their_order(kafka, topic):
    headers = [("till", b"3"), ("till", b"4"), ("nothing", None), ("traced", b"\x00\xff")]
    orders = Orders(kafka.bootstrap_servers, topic)
    orders.send("two apples", headers=headers)
    orders.wait()
    (record,) = read(kafka.bootstrap_servers, topic, 1)
    assert record.headers() == headers


def test_the_senders_timestamp_is_kept(kafka, topic):
    orders = Orders(kafka.bootstrap_servers, topic)
    orders.send("two apples", timestamp=LONG_AGO_MS)
    orders.wait()
    (record,) = read(kafka.bootstrap_servers, topic, 1)
    assert record.timestamp() == (TIMESTAMP_CREATE_TIME, LONG_AGO_MS)


def test_a_topic_may_stamp_records_itself(kafka, topic_name):
    topic = kafka.create_topic(topic_name, message_timestamp_type="LogAppendTime")
    orders = Orders(kafka.bootstrap_servers, topic)
    orders.send("two apples", timestamp=LONG_AGO_MS)
    orders.wait()
    (record,) = read(kafka.bootstrap_servers, topic, 1)
    kind, timestamp_ms = record.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME and timestamp_ms > LONG_AGO_MS


def test_a_customers_orders_stay_together_and_in_order(kafka, topic_name):
    topic = kafka.create_topic(topic_name, partitions=6)
    orders = Orders(kafka.bootstrap_servers, topic)
    for number in range(200):
        orders.send(str(number), customer=f"customer-{number % 20}")
    orders.wait()
    where, sequence = defaultdict(set), defaultdict(list)
    for record in read(kafka.bootstrap_servers, topic, 200, range(6)):
        where[record.key()].add(record.partition())
        sequence[record.key()].append(int(record.value()))
    assert all(len(partitions) == 1 for partitions in where.values())
    assert len(set.union(*where.values())) > 1, "and not all customers are in one partition"
    assert all(numbers == sorted(numbers) for numbers in sequence.values())


def test_a_compressed_batch_is_read_as_it_was_sent(kafka, topic):
    sent = [f"order {number} of many like it" for number in range(500)]
    orders = Orders(kafka.bootstrap_servers, topic, **{"compression.type": "zstd", "linger.ms": 50})
    for order in sent:
        orders.send(order)
    orders.wait()
    assert values(read(kafka.bootstrap_servers, topic, 500)) == sent
