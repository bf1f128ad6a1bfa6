"""For the same topics both formats return the same rows: every column, every codec, gaps, lost beginnings, nothing."""

from tests.compat.spark.both import Both
from tests.compat.spark.world import CODECS, COMPACTED, RECORDS, World


def test_a_batch_of_all_topics(both: Both, world: World) -> None:
    rows = both.batches(subscribe=",".join(world.topics), includeHeaders="true")
    of = {topic: [row for row in rows if row["topic"] == topic] for topic in world.topics}

    for codec in CODECS:
        assert len(of[f"codec-{codec}"]) == 2 * RECORDS
    plain = of["codec-none"]
    assert {row["timestampType"] for row in plain} == {0}
    assert {row["timestampType"] for row in of["append-time"]} == {1}
    assert {None, b""} < {row["key"] for row in plain} and {None, b""} < {row["value"] for row in plain}
    assert [row["headers"] for row in plain[:4]] == [
        None,
        [{"key": "one", "value": b"1"}],
        [{"key": "twice", "value": b"1"}, {"key": "twice", "value": None}, {"key": "ä", "value": b""}],
        None,
    ]
    assert {row["partition"] for row in of["sparse"]} == {2}
    assert [row["offset"] for row in of["beheaded"]] == [*range(50, RECORDS), *range(RECORDS)]
    assert 10 <= len(of["compacted"]) < COMPACTED // 2
    assert len(of["wide"]) == 80


def test_a_stream_of_all_topics(both: Both, world: World) -> None:
    streamed = both.streams(subscribe=",".join(world.topics), startingOffsets="earliest", includeHeaders="true")
    assert len(streamed.triggers) == 1
    assert streamed.rows == both.batch("klamm", {"subscribe": ",".join(world.topics), "includeHeaders": "true"})


def test_the_schema_and_a_part_of_the_columns(both: Both) -> None:
    ours, theirs = (both.frame(kind, {"subscribe": "sparse", "includeHeaders": "true"}) for kind in ("klamm", "kafka"))
    assert ours.schema == theirs.schema
    assert ours.select("headers", "offset").toArrow() == theirs.select("headers", "offset").toArrow()
    assert ours.where("partition = 1").count() == theirs.where("partition = 1").count() == 0
