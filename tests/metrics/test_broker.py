"""A broker's page follows what clients do, and what it says of requests and groups is what they did."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from klamm.runtime.metrics.family import FAMILIES
from klamm.runtime.metrics.page import PARTS
from klamm.runtime.metrics.tally import SLICE
from tests.harness.klamm_node import KlammNode
from tests.harness.node import free_port
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.local.clients import read, write
from tests.metrics.scraping import asked, parsed, scraped

TRAFFIC = "kafka_server_brokertopicmetrics"
REQUESTS = "kafka_network_requestmetrics"


class Watched(KlammNode):
    """A broker with metrics."""

    def __init__(self, home: Path) -> None:
        self.metrics_port = free_port()
        super().__init__(home, {"klamm.metrics.listener": f"127.0.0.1:{self.metrics_port}"})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    node = Watched(tmp_path_factory.mktemp("watched"))
    node.start()
    yield node
    node.discard()


def test_it_says_where_and_is_alive_and_ready(broker: Watched) -> None:
    wait_until(lambda: asked(broker.metrics_port, "/healthz") == (200, "ok\n"), "it answers")
    assert asked(broker.metrics_port, "/readyz") == (200, "ready\n")
    assert f"serves metrics at http://127.0.0.1:{broker.metrics_port}/metrics" in broker.log
    assert asked(broker.metrics_port, "/elsewhere")[0] == 404
    page = scraped(broker.metrics_port)
    assert page.value("klamm_ready") == page.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert page.value("kafka_server_kafkaserver_brokerstate") == 3


def test_every_family_is_on_the_page_once_with_its_kind_meaning_and_labels(broker: Watched, topic: str) -> None:
    assert PARTS
    create_topic(broker.bootstrap, topic, 1)
    page = scraped(broker.metrics_port)
    assert page.kinds == {each.name: each.kind for each in FAMILIES}
    assert page.helps == {each.name: each.what for each in FAMILIES}
    for each in FAMILIES:
        assert each.name.endswith("_total") == (each.kind == "counter"), each.name
        for name in (name for name, family in page.families_of_samples.items() if family == each.name):
            for labels in page.labels_of(name):
                assert labels - {"le"} in (set(each.label_names), set()), name


def test_only_the_families_that_are_asked_for(broker: Watched) -> None:
    """As Prometheus' libraries have it; browsers and scrapers write brackets in their own way."""
    for names in ("name[]=klamm_ready&name[]=no_such", "name%5B%5D=klamm_ready"):
        page = parsed(asked(broker.metrics_port, f"/metrics?{names}")[1])
        assert list(page.kinds) == ["klamm_ready"] and page.value("klamm_ready") == 1
    assert len(parsed(asked(broker.metrics_port, "/metrics?other=1")[1]).kinds) == len(FAMILIES)


def test_records_and_bytes_are_counted_by_topic(broker: Watched, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 2)
    before = scraped(broker.metrics_port)
    write(broker.bootstrap, topic, *[f"value {number}" for number in range(500)])
    page = scraped(broker.metrics_port)
    assert page.value(f"{TRAFFIC}_messagesin_total", topic=topic) == 500
    written = page.value(f"{TRAFFIC}_bytesin_total", topic=topic)
    sizes = [page.value("kafka_log_log_size", topic=topic, partition=index) for index in range(2)]
    ends = [page.value("kafka_log_log_logendoffset", topic=topic, partition=index) for index in range(2)]
    assert written == sum(sizes) > 500 * len("value 1") and sum(ends) == 500
    assert page.value(f"{TRAFFIC}_bytesout_total", topic=topic) == 0
    assert page.value(f"{TRAFFIC}_messagesin_total") - before.value(f"{TRAFFIC}_messagesin_total") == 500
    for index, end in enumerate(ends):
        assert page.value("kafka_topic_partition_current_offset", topic=topic, partition=index) == end
        if end:
            read(broker.bootstrap, topic, int(end), index)
    # librdkafka may fetch what it has fetched already, when it is closed in the middle of a fetch; never less.
    assert scraped(broker.metrics_port).value(f"{TRAFFIC}_bytesout_total", topic=topic) >= written


def test_a_deleted_topic_is_gone_and_stays_in_the_sum(broker: Watched, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    write(broker.bootstrap, topic, "a", "b", "c")
    before = scraped(broker.metrics_port)
    assert before.value(f"{TRAFFIC}_messagesin_total", topic=topic) == 3
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    page = scraped(broker.metrics_port)
    assert (f"{TRAFFIC}_messagesin_total", frozenset({("topic", topic)})) not in page.samples
    assert page.value(f"{TRAFFIC}_messagesin_total") == before.value(f"{TRAFFIC}_messagesin_total")
    assert not [labels for name, labels in page.samples if name == "kafka_log_log_size" and ("topic", topic) in labels]


def test_requests_are_counted_and_timed(broker: Watched, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    write(broker.bootstrap, topic, "to be sure that there are some")
    before = scraped(broker.metrics_port)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "acks": "1"})
    for number in range(50):
        producer.produce(topic, value=str(number))
        assert producer.flush(30) == 0
    page = scraped(broker.metrics_port)

    def grown(name: str) -> float:
        return page.value(name, request="Produce") - before.value(name, request="Produce")

    assert grown(f"{REQUESTS}_requests_total") == 50
    assert grown(f"{REQUESTS}_totaltimems_count") == 50
    assert 50 * 0.001 < grown(f"{REQUESTS}_totaltimems_sum") < 60_000
    steps = page.value("klamm_node_step_seconds_count") - before.value("klamm_node_step_seconds_count")
    assert steps >= 50
    assert page.value("klamm_node_step_seconds_sum") > before.value("klamm_node_step_seconds_sum")


@pytest.mark.parametrize(
    "family", ["klamm_node_step_seconds", f"{REQUESTS}_totaltimems"], ids=lambda name: name.rpartition("_")[2]
)
def test_a_histogram_grows_from_bucket_to_bucket_up_to_its_count(broker: Watched, topic: str, family: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    page = scraped(broker.metrics_port)
    series: dict[frozenset[tuple[str, str]], list[tuple[float, float]]] = {}
    for (name, labels), value in page.samples.items():
        if name == f"{family}_bucket":
            bound = next(text for key, text in labels if key == "le")
            rest = frozenset(pair for pair in labels if pair[0] != "le")
            series.setdefault(rest, []).append((float(bound), value))
    assert series
    for labels, found in series.items():
        values = [value for _, value in sorted(found)]
        assert values == sorted(values) and values[-1] == page.samples[f"{family}_count", labels]


def test_a_fetch_that_waits_is_timed_with_its_waiting(broker: Watched, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 1)
    write(broker.bootstrap, topic, "one")
    read(broker.bootstrap, topic, 1)
    before = scraped(broker.metrics_port)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none", "fetch.wait.max.ms": 400}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 1)])
    name = f"{REQUESTS}_totaltimems"

    def has_waited() -> bool:
        consumer.poll(0.1)
        page = scraped(broker.metrics_port)
        count = page.value(f"{name}_count", request="Fetch") - before.value(f"{name}_count", request="Fetch")
        total = page.value(f"{name}_sum", request="Fetch") - before.value(f"{name}_sum", request="Fetch")
        return count > 0 and total >= 390 and page.value("klamm_requests_waiting") >= 1

    wait_until(has_waited, "a fetch has waited, and the next one waits")
    consumer.close()


def test_a_group_has_members_an_offset_and_a_lag_and_any_name(broker: Watched, topic: str) -> None:
    group = 'a "group" \\ of\nours'
    create_topic(broker.bootstrap, topic, 1)
    write(broker.bootstrap, topic, *map(str, range(10)))
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    for _ in range(4):
        message = consumer.poll(30)
        assert message is not None and not message.error()
    consumer.commit(message, asynchronous=False)
    page = scraped(broker.metrics_port)
    assert page.value("kafka_consumergroup_members", consumergroup=group) == 1
    at = {"consumergroup": group, "topic": topic, "partition": 0}
    assert page.value("kafka_consumergroup_current_offset", **at) == 4
    assert page.value("kafka_consumergroup_lag", **at) == 6
    write(broker.bootstrap, topic, *map(str, range(5)))
    assert scraped(broker.metrics_port).value("kafka_consumergroup_lag", **at) == 11
    consumer.close()
    page = scraped(broker.metrics_port)
    assert page.value("kafka_consumergroup_members", consumergroup=group) == 0
    assert page.value("kafka_coordinator_group_groupmetadatamanager_numgroups") >= 1


def test_connections_and_the_process_are_counted(broker: Watched) -> None:
    before = scraped(broker.metrics_port)
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), 10))
        name = "kafka_server_socketservermetrics_connection"

        def counted() -> bool:
            page = scraped(broker.metrics_port)
            return page.value(f"{name}_creation_total") == before.value(f"{name}_creation_total") + 5

        wait_until(counted, "five more connections")
        assert scraped(broker.metrics_port).value(f"{name}_count") >= 5
    page = scraped(broker.metrics_port)
    fields = Path(f"/proc/{broker.pid}/statm").read_text().split()
    assert page.value("process_resident_memory_bytes") == pytest.approx(int(fields[1]) * 4096, rel=0.3)
    open_now = len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))
    assert page.value("process_open_fds") == pytest.approx(open_now, abs=5) and open_now > 8
    assert page.value("process_cpu_seconds_total") > 0.05
    assert page.value("process_start_time_seconds") == pytest.approx(Path(f"/proc/{broker.pid}").stat().st_ctime, abs=5)


def test_strange_bytes_on_the_metrics_port_do_not_disturb_the_broker(broker: Watched, topic: str) -> None:
    for said in (
        b"\x00\x00\x00\x14\x00\x12\x00\x03\x00\x00",
        b"GET /metrics\r\n\r\n",
        b"\xff" * 20_000,
        b"DELETE / HTTP/1.1",
    ):
        with socket.create_connection(("127.0.0.1", broker.metrics_port), 10) as sock, contextlib.suppress(OSError):
            sock.sendall(said)
            if not said.startswith(b"DELETE"):
                assert sock.recv(100).startswith(b"HTTP/1.1 400")
    create_topic(broker.bootstrap, topic, 1)
    write(broker.bootstrap, topic, "all is well")
    assert scraped(broker.metrics_port).value(f"{TRAFFIC}_messagesin_total", topic=topic) == 1


def test_a_long_page_is_made_a_few_samples_at_a_time(broker: Watched, topic: str) -> None:
    """Between two pieces the node serves others."""
    create_topic(broker.bootstrap, topic, 1_000)
    with socket.create_connection(("127.0.0.1", broker.metrics_port), 20) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        rest = b"".join(iter(lambda: sock.recv(65536), b"")).partition(b"\r\n\r\n")[2]
    pieces = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        pieces.append(rest[: int(size, 16)].decode())
        rest = rest[int(size, 16) + 2 :]
    assert pieces.pop() == ""
    assert max(piece.count("\n") for piece in pieces) < 2 * SLICE and len(pieces) > 9 * 1_000 / SLICE
    assert parsed("".join(pieces)).value("kafka_log_log_size", topic=topic, partition=999) == 0


def test_a_taken_port_is_said_and_does_not_stop_a_broker(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        node = Watched(tmp_path)
        node.settings["klamm.metrics.listener"] = f"127.0.0.1:{other.getsockname()[1]}"
        try:
            node.start()
            write(node.bootstrap, "orders", "one")
            assert "cannot serve metrics at" in node.log and "goes on without them" in node.log
            assert node.stop() == 0
        finally:
            node.discard()
