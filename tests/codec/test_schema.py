"""The tables as Python sees them: constructors, defaults, comparison."""

import copy

import pytest

from klamm.codec.compiler import decode, encode
from klamm.codec.reading import reader_source
from klamm.codec.schema import (
    NO_UUID,
    Records,
    Versions,
    array,
    boolean,
    bytes_,
    float64,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uint32,
    uuid,
    versions_of,
)
from klamm.codec.writing import writer_source


@struct
class Leader:
    id: int = int32(default=-1)
    epoch: int = int32(default=-1)


@struct
class Replicas:
    nodes: list[int] = array(int32())


@struct
class Partition:
    index: int = int32()
    leader: Leader = nested(Leader, versions="1+")
    replicas: Replicas = nested(Replicas, versions="1+", tag=0, tagged="2+")
    previous: Leader | None = nested(Leader, versions="1+", nullable="2+", default=None)
    size: int = uint32()


@message(versions="0-3", flexible="2+")
class Answer:
    name: str | None = string(nullable="1+")
    topic_id: bytes = uuid(versions="3+")
    partitions: list[Partition] = array(Partition)
    notes: list[str] | None = array(string(), versions="1+", nullable="1+", default=None)
    ratio: float = float64()
    secret: bytes = bytes_(versions="1+")
    batches: Records = records(nullable="0+", default=None)
    final: bool = boolean(versions="2+", tag=3, tagged="2+", default=True)


@message()
class Nothing:
    pass


def test_versions_are_spelled_as_kafka_spells_them() -> None:
    assert versions_of("3+") == Versions(3, 32_767)
    assert versions_of("3-5") == Versions(3, 5)
    assert versions_of("4") == Versions(4, 4)
    assert 5 in versions_of("3-5")
    assert 6 not in versions_of("3-5")


def test_every_field_has_a_default() -> None:
    answer = Answer()
    assert (answer.name, answer.topic_id, answer.partitions, answer.notes) == ("", NO_UUID, [], None)
    assert (answer.ratio, answer.secret, answer.batches, answer.final) == (0.0, b"", None, True)
    assert answer.partitions is not Answer().partitions


def test_values_compare_and_show_what_differs() -> None:
    assert Answer(name="a") == Answer("a")
    assert Answer(name="a") != Answer("b")
    assert Answer() != Nothing()  # type: ignore[comparison-overlap]
    assert Nothing() == Nothing()
    assert repr(Answer(name="a", partitions=[Partition(3)])) == "Answer(name='a', partitions=[Partition(index=3)])"
    assert repr(Partition(replicas=Replicas([1]))) == "Partition(replicas=Replicas(nodes=[1]))"


def test_a_misspelled_field_is_refused() -> None:
    with pytest.raises(TypeError):
        Answer(nmae="a")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Answer().nmae = "a"  # type: ignore[attr-defined]


def test_a_shared_default_cannot_be_changed_by_accident() -> None:
    """Two partitions hold the same default leader, so changing it through one would change the other."""
    partition = Partition()
    assert partition.leader is Partition().leader
    assert partition.leader == Leader()
    with pytest.raises(AttributeError, match="assign a new one"):
        partition.leader.id = 4
    partition.leader = Leader(4, 7)
    assert Partition().leader == Leader(-1, -1)


def test_a_copy_of_a_shared_default_can_be_changed() -> None:
    copied = copy.deepcopy(Partition(7))
    assert copied == Partition(7)
    copied.leader.id = 4
    assert Partition().leader.id == -1


def test_a_default_with_a_list_inside_is_never_shared() -> None:
    partition = Partition()
    partition.replicas.nodes.append(1)
    assert Partition().replicas.nodes == []


@pytest.mark.parametrize("version", range(4))
def test_what_a_version_lacks_is_its_default_after_reading(version: int) -> None:
    sent = Answer(
        "a", b"i" * 16, [Partition(1, Leader(2, 3), Replicas([4]), Leader(5, 6), 2**32 - 1)], ["n"], 0.5, b"s", b"r"
    )
    received = decode(Answer, version, encode(sent, version), exact=True)
    partition = sent.partitions[0] if version >= 1 else Partition(1, size=2**32 - 1)
    assert received.partitions == [partition]
    assert received.topic_id == (sent.topic_id if version == 3 else NO_UUID)
    assert received.notes == (["n"] if version >= 1 else None)
    assert received.secret == (b"s" if version >= 1 else b"")
    assert isinstance(received.batches, memoryview)


def test_a_message_without_fields() -> None:
    assert encode(Nothing(), 0) == b""
    assert decode(Nothing, 0, b"", exact=True) == Nothing()


def test_fields_of_fixed_width_are_read_and_written_together() -> None:
    """The reason for compiling: four fields, one call."""

    @message(versions="0", flexible="0+")
    class Fixed:
        a: int = int32()
        b: int = int64()
        c: bool = boolean()
        d: bytes = uuid()

    assert "value.a, value.b, value.c, value.d, tags" in reader_source(Fixed, 0)
    assert writer_source(Fixed, 0).count("out +=") == 1
    assert encode(Fixed(1, 2, True, b"u" * 16), 0).hex() == "00000001" + "0000000000000002" + "01" + "75" * 16 + "00"


def test_a_string_kafka_would_not_read_is_not_written() -> None:
    with pytest.raises(ValueError, match="32767"):
        encode(Answer(name="x" * 32_768), 2)
    assert decode(Answer, 2, encode(Answer(name="x" * 32_767), 2)).name == "x" * 32_767


def test_an_unknown_version_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        encode(Answer(), 4)
