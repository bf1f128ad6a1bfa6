"""Kafka's small text files, to the byte; and whatever is not exactly one is not read."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.ids import TopicPartition, uuid_from_text
from klamm.log.checkpoint import (
    clean_shutdown_text,
    epochs_text,
    meta_properties_text,
    offsets_text,
    partition_metadata_text,
    read_clean_shutdown,
    read_epochs,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
)

TOPIC_ID = uuid_from_text("ZDzpGlISQ_6B7UcIXmOpEg")


def test_the_files_read_as_kafka_writes_them() -> None:
    assert offsets_text({TopicPartition("b", 0): 7, TopicPartition("a", 1): 5}) == b"0\n2\na 1 5\nb 0 7\n"
    assert epochs_text([(0, 0), (3, 17)]) == b"0\n2\n0 0\n3 17\n"
    assert partition_metadata_text(TOPIC_ID) == b"version: 0\ntopic_id: ZDzpGlISQ_6B7UcIXmOpEg"
    assert clean_shutdown_text(12) == b'{"version":0,"brokerEpoch":12}'
    assert meta_properties_text("cluster", 4, TOPIC_ID) == (
        b"cluster.id=cluster\ndirectory.id=ZDzpGlISQ_6B7UcIXmOpEg\nnode.id=4\nversion=1\n"
    )


def test_what_is_written_is_read() -> None:
    assert read_partition_metadata(partition_metadata_text(TOPIC_ID)) == TOPIC_ID
    assert read_clean_shutdown(clean_shutdown_text(-1)) == -1
    kafkas = b"#\n#Thu Nov 06 2025\ncluster.id=abc\nversion=1\ndirectory.id=x\nnode.id=1\n"
    assert read_meta_properties(kafkas) == {
        "cluster.id": "abc",
        "version": "1",
        "directory.id": "x",
        "node.id": "1",
    }


@given(st.dictionaries(st.tuples(st.sampled_from(["orders", "a.b_c-d"]), st.integers(0, 99)), st.integers(0, 2**62)))
def test_offsets_survive_and_a_torn_file_does_not(offsets: dict[tuple[str, int], int]) -> None:
    expected = {TopicPartition(*key): offset for key, offset in offsets.items()}
    data = offsets_text(expected)
    assert read_offsets(data) == expected
    for size in range(len(data)):
        assert read_offsets(data[:size]) is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=6))
def test_only_epochs_that_grow_are_believed(entries: list[tuple[int, int]]) -> None:
    grows = all(
        entries[number][0] < entries[number + 1][0] and entries[number][1] < entries[number + 1][1]
        for number in range(len(entries) - 1)
    )
    assert read_epochs(epochs_text(entries)) == (entries if grows else None)


def test_nonsense_is_not_read() -> None:
    for data in (b"", b"1\n0\n", b"0\n1\n", b"0\n0\nx 1\n", b"0\nx\n", b"\xff\xfe", b"0\n1\na b c\n", b"0\n1\na 1\n"):
        assert read_offsets(data) is None
    for data in (b"", b"0\n1\nx 1\n", b"0\n1\n-1 5\n", b"0\n1\n5 -1\n"):
        assert read_epochs(data) is None
    for data in (b"", b"version: 0\ntopic_id: short", b"version: 0", b"topic_id: ZDzpGlISQ_6B7UcIXmOpEg\nversion: 0"):
        assert read_partition_metadata(data) is None
    for data in (b"", b"[]", b"3", b"{}", b'{"brokerEpoch":"x"}'):
        assert read_clean_shutdown(data) is None
    assert read_meta_properties(b"version=1\n") is None
