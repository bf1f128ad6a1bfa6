"""A pipeline that has read on a cluster before, started with a directory that knows nothing of it."""

import socket
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import klamm
from klamm.ids import TopicPartition
from klamm.pipeline import Pipeline, Source, Table, Topic
from klamm.pipeline.earlier import Earlier, ReadBefore, earlier_runs, note_of, told, written_again
from klamm.pipeline.kafka import committing
from klamm.pipeline.kafka.access import LIBRDKAFKA, RAW, Access, Committed, opened
from klamm.pipeline.keeping import NOTE, Directory
from klamm.pipeline.loading import loaded
from klamm.pipeline.queries import Wishes, reading
from klamm.pipeline.running import Job, _look_back, run
from klamm.pipeline.source.options import stream_options
from klamm.pipeline.source.stream import KlammStreamReader
from klamm.pipeline.topics import NewTopic
from tests.pipeline.runner.shop import FILE
from tests.pipeline.runner.world import PARTITIONS, make_topic, produce

HERE = socket.gethostname()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream does not stand still to tell how far it is. Here that is what is asked for, and machines are busy."""
    monkeypatch.setattr(committing, "PATIENCE_SECONDS", 60.0)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with klamm.Cluster(brokers=1) as cluster:
        make_topic(cluster.bootstrap_servers)
        for topic in ("revenue", "orders.quarantine"):
            make_topic(cluster.bootstrap_servers, topic)
        produce(cluster.bootstrap_servers, 0, 30)
        yield cluster.bootstrap_servers


def access_of(servers: str, reader: str) -> Access:
    options = {"kafka.bootstrap.servers": servers, "subscribe": "orders", "klamm.reader": reader}
    return opened(stream_options(options).cluster, reader)


def commit(servers: str, group: str, reader: str, note: str, offset: int = 500) -> None:
    """As the source of a run does it."""
    access = access_of(servers, reader)
    access.write_down(group, {TopicPartition("orders", each): offset for each in range(PARTITIONS)}, note)
    access.close()


def begun(tmp_path: Path, servers: str, group: str) -> Job:
    """A run with a fresh directory."""
    (tmp_path / "shop.py").write_text(FILE)
    wishes = Wishes(servers, once=True, kafka={"group.id": group})
    return Job(loaded(tmp_path / "shop.py"), Directory(tmp_path / "elsewhere"), wishes)


def looked_back(job: Job, new: Sequence[NewTopic] = ()) -> list[str]:
    said: list[str] = []
    _look_back(job, list(new), said.append)
    return said


@pytest.mark.parametrize("reader", [RAW, LIBRDKAFKA])
def test_topics_do_not_get_everything_twice_unasked(servers: str, tmp_path: Path, reader: str) -> None:
    kept, group = tmp_path / "p" / "pipeline-data" / "shop", f"once-by-{reader}"
    kept.mkdir(parents=True)
    job = begun(tmp_path, servers, group)
    assert looked_back(job) == [], "nobody has read yet"
    commit(servers, group, reader, note_of(job.loaded.pipeline, kept))
    with pytest.raises(ReadBefore) as refused:
        run(job, lambda *each: None, lambda text: None)
    text = str(refused.value)
    assert f"up to 1,500 records of orders (group {group})" in text
    assert f"nothing in {tmp_path / 'elsewhere'}; it is in {kept}." in text
    assert "topic revenue would get everything a second time" in text
    assert "What is bad would go to topic orders.quarantine a second time." in text
    assert f"To go on from there: --data {kept}." in text and text.endswith("say --reset.")
    assert not job.directory.path.exists(), "nothing is left where it did not begin"


@pytest.mark.parametrize("writer", [RAW, LIBRDKAFKA])
@pytest.mark.parametrize("reader", [RAW, LIBRDKAFKA])
def test_a_note_is_read_as_it_was_written_by_whoever_it_is_read(servers: str, writer: str, reader: str) -> None:
    """librdkafka's Python client reads on behind its end, into whatever is in memory there; it need not be text."""
    access = access_of(servers, reader)
    for length in range(20, 260, 24):
        commit(servers, f"notes-{writer}-{reader}", writer, note := f"shop@host:/{'ä' * length}")
        found = access.written_down(f"notes-{writer}-{reader}")
        assert found == {TopicPartition("orders", each): (500, note) for each in range(PARTITIONS)}
    access.close()


def read(pipeline: Pipeline, wishes: Wishes, kept: Path) -> None:
    """As Spark does it for a query of a run that keeps what it has in `kept`: a batch is planned, and it is done."""
    (source,) = pipeline.sources
    reader = KlammStreamReader(reading(pipeline, source.name, source, Directory(kept), wishes))
    reader.commit(reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit()))
    reader.stop()


@pytest.mark.parametrize("settings", [{}, {"group.id": "team"}])
def test_a_query_notes_whose_it_is_and_where(servers: str, tmp_path: Path, settings: dict[str, str]) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    job = begun(tmp_path, servers, "")
    job = replace(job, wishes=replace(job.wishes, kafka=settings))
    assert looked_back(job) == []
    read(job.loaded.pipeline, job.wishes, kept)
    with pytest.raises(ReadBefore, match=f"up to 30 records of orders.* To go on from there: --data {kept}."):
        looked_back(job)


def test_another_pipeline_of_the_same_group_is_not_taken_for_ours(servers: str, tmp_path: Path) -> None:
    job = begun(tmp_path, servers, "shared")
    billing = replace(job, loaded=replace(job.loaded, pipeline=replace(job.loaded.pipeline, name="billing")))
    read(billing.loaded.pipeline, job.wishes, tmp_path)
    assert looked_back(job) == []
    with pytest.raises(ReadBefore):
        looked_back(billing)
    commit(servers, "shared", RAW, "")
    assert looked_back(billing) == [], "whose it is nobody knows"


def test_what_is_begun_here_is_gone_on_with(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    assert not directory.is_begun
    checkpoint = directory.checkpoint("orders")
    checkpoint.mkdir(parents=True)
    assert not directory.is_begun
    (checkpoint / NOTE).write_text("{}")
    assert directory.is_begun


def test_where_nothing_is_written_a_second_time_it_is_only_told(servers: str, tmp_path: Path) -> None:
    job = begun(tmp_path, servers, "only-tables")
    commit(servers, "only-tables", RAW, "shop@")
    (text,) = looked_back(job, [NewTopic("revenue", 1, 1), NewTopic("orders.quarantine", 1, 1)])
    assert "reads everything again" in text and "--reset" not in text and "where it was kept is not known" in text
    assert "quarantine" not in text
    (text,) = looked_back(job, [NewTopic("revenue", 1, 1)])
    assert "What is bad goes to topic orders.quarantine a second time." in text and "--reset" not in text


def test_a_cluster_that_does_not_tell_is_no_reason_not_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.pipeline.topics.ANSWER_SECONDS", 0.5)
    (text,) = looked_back(begun(tmp_path, "127.0.0.1:1", "nobody"))
    assert text.startswith("whether this pipeline has read on this cluster before could not be seen: ")


def pipeline_with(**options: str) -> Pipeline:
    def doubled(orders: Any) -> Any:
        return orders

    return Pipeline(name="shop", sources=[Source("orders", options=options)], outputs=[Topic("big", doubled)])


def test_what_was_read() -> None:
    committed: Committed = {
        TopicPartition("orders", 0): (5, ""),
        TopicPartition("orders", 1): (7, "shop@host:/da@ta"),
        TopicPartition("orders", 2): (-1001, "what somebody else writes here"),
        TopicPartition("orders", 3): (100, "billing@host:/billing"),
        TopicPartition("other", 0): (9, ""),
    }
    answers = {"shop-orders": committed, "shop-doubled": {TopicPartition("orders", 0): (0, "shop@host:/data")}}
    assert earlier_runs(pipeline_with(), {}, lambda groups: {group: answers[group] for group in groups}) == [
        Earlier("shop-orders", 12, ("orders",), "host:/da@ta")
    ]


@pytest.mark.parametrize(
    ("options", "is_asked"),
    [
        ({"startingOffsets": "Earliest"}, True),
        ({"startingOffsets": "latest"}, False),
        ({"startingoffsets": '{"orders": {"0": 5}}'}, False),
        ({"startingTimestamp": "1"}, False),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 5}}'}, False),
    ],
)
def test_a_source_that_is_told_where_to_begin_reads_nothing_again(options: dict[str, str], is_asked: bool) -> None:
    pipeline = pipeline_with(**options)
    found = earlier_runs(
        pipeline, {}, lambda groups: {group: {TopicPartition("orders", 0): (5, "")} for group in groups}
    )
    assert bool(found) is is_asked
    assert written_again(pipeline, [Earlier("g", 5, ("orders",))]) == (["big"] if is_asked else [], [])


def test_what_is_made_of_other_sources_is_not_written_again() -> None:
    def of_orders(orders: Any) -> Any:
        return orders

    def of_clicks(clicks: Any) -> Any:
        return clicks

    sources = [
        Source("orders", json="id string"),
        Source("clicks", json="id string", options={"startingOffsets": "latest"}),
    ]
    pipeline = Pipeline(name="shop", sources=sources, outputs=[Table("orders", of_orders), Topic("seen", of_clicks)])
    assert written_again(pipeline, [Earlier("shop-orders", 5, ("orders",))]) == ([], ["orders.quarantine"])


@pytest.mark.parametrize(
    ("options", "settings", "groups"),
    [
        ({}, {}, ["shop-doubled", "shop-orders"]),
        ({}, {"group.id": "mine"}, ["mine"]),
        ({"kafka.group.id": "its own"}, {"group.id": "mine"}, ["its own"]),
    ],
)
def test_the_groups_that_are_asked_about(options: dict[str, str], settings: dict[str, str], groups: list[str]) -> None:
    asked: list[str] = []

    def ask(names: Collection[str]) -> dict[str, Committed]:
        asked.extend(names)
        return {name: {} for name in names}

    assert earlier_runs(pipeline_with(**options), settings, ask) == []
    assert sorted(asked) == groups


def test_where_it_was_kept(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "new")

    def said(place: str) -> str:
        return told([Earlier("shop-orders", 5, ("orders",), place)], directory, ["sums"], [])

    assert f"it is in {tmp_path}. " in said(f"{HERE}:{tmp_path}")
    assert "it was kept in /srv/x on far. " in said("far:/srv/x")
    assert "it was kept in /no/such, which has gone. " in said(f"{HERE}:/no/such")
    here = said(f"{HERE}:{directory.path}")
    assert f"nothing in {directory.path}; what was kept there has gone. " in here
    assert here.endswith("--reset begins anew. To go on from where it was instead, put its checkpoints back.")
    assert "topic sums would get everything a second time" in said("")
    assert f"tables begin anew in {directory.tables}" in here
    directory.tables.mkdir(parents=True)
    assert f"tables that are in {directory.tables} stay with their rows" in said(f"{HERE}:{directory.path}")


def test_a_note_is_short_enough_for_any_broker() -> None:
    assert note_of(pipeline_with(), Path("/data")) == f"shop@{HERE}:/data"
    assert note_of(pipeline_with(), Path("/" + "x" * 2_000)) == "shop@"
