"""Every promise can be seen to be broken, and a clean history breaks none."""

import pytest

from klamm.chaos.verdict import Place, Read, Reader, Sender, Stamp, Stamps, broken_promises, copies_of_plain

ORDERS = Place("orders", 0)
ONE, TWO, THREE = b"exact:1 xx", b"exact:2", b"exact:3 x"


def sender(*values: bytes, acknowledged: tuple[bytes, ...] | None = None, is_idempotent: bool = True) -> Sender:
    made = Sender("exact", is_idempotent)
    made.sent[ORDERS] = list(values)
    told = values if acknowledged is None else acknowledged
    made.acknowledged[ORDERS] = {value: values.index(value) for value in told}
    return made


def reader(*values: bytes, name: str = "reader", first: int = 0, reached_end: bool = True) -> Reader:
    return Reader(name, [Read(ORDERS, first + at, value) for at, value in enumerate(values)], reached_end)


def broken(senders: list[Sender], readers: list[Reader], stamps: Stamps | None = None) -> list[str]:
    return [each.promise for each in broken_promises(senders, readers, stamps or {})]


def test_a_clean_history_keeps_every_promise() -> None:
    assert broken([sender(ONE, TWO, THREE)], [reader(ONE, TWO, THREE), reader(ONE, TWO, THREE, name="late")]) == []


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    sent = sender(ONE, TWO, THREE, acknowledged=(ONE,))
    assert broken([sent], [reader(ONE)]) == []
    assert broken([sent], [reader(ONE, TWO, THREE)]) == []


def test_who_did_not_read_to_the_end_need_not_have_seen_everything() -> None:
    assert broken([sender(ONE, TWO)], [reader(ONE, TWO), reader(ONE, name="stopped", reached_end=False)]) == []


def test_lost() -> None:
    assert broken([sender(ONE, TWO)], [reader(ONE)]) == ["lost"]


def test_what_was_read_once_and_is_gone_is_lost() -> None:
    early = reader(ONE, TWO, name="early", reached_end=False)
    assert broken([sender(ONE, TWO)], [early, reader(ONE)]) == ["lost"]


def test_unseen() -> None:
    assert broken([sender(ONE, TWO)], [reader(ONE, TWO), reader(ONE, name="another")]) == ["unseen"]


def test_changed_between_two_readers() -> None:
    sent = sender(ONE, TWO, THREE, acknowledged=(ONE,))
    assert broken([sent], [reader(ONE, TWO), reader(ONE, THREE, name="another")]) == ["changed"]


def test_changed_against_what_the_producer_was_told() -> None:
    sent = sender(ONE, TWO, acknowledged=())
    sent.acknowledged[ORDERS] = {TWO: 0}
    assert broken([sent], [reader(ONE, TWO)]) == ["changed"]


def test_an_acknowledgement_without_an_offset_says_nothing_of_it() -> None:
    sent = sender(ONE, TWO)
    sent.acknowledged[ORDERS][TWO] = -1
    assert broken([sent], [reader(ONE, TWO)]) == []


def test_doubled() -> None:
    sent = sender(ONE, TWO, acknowledged=(ONE,))
    assert broken([sent], [reader(ONE, TWO, ONE)]) == ["doubled"]


@pytest.mark.parametrize(("second", "promise"), [(Stamp(7, 0), "doubled"), (Stamp(7, 1), "doubled anew")])
def test_copies_under_one_epoch_are_the_brokers_and_under_two_the_clients(second: Stamp, promise: str) -> None:
    sent = sender(ONE, TWO)
    stamps = {ORDERS: {0: Stamp(7, 0), 1: Stamp(7, 0), 2: second}}
    assert broken([sent], [reader(ONE, TWO, ONE)], stamps) == [promise]


def test_a_producer_that_is_not_idempotent_may_double_and_mix() -> None:
    sent = sender(ONE, TWO, acknowledged=(ONE, TWO), is_idempotent=False)
    sent.acknowledged[ORDERS] = {ONE: 2, TWO: 0}
    read = [reader(TWO, ONE, ONE)]
    assert broken([sent], read) == [] and copies_of_plain([sent], read) == 1


def test_out_of_order() -> None:
    sent = sender(ONE, TWO, THREE, acknowledged=())
    assert broken([sent], [reader(ONE, THREE, TWO)]) == ["out of order"]


def test_strange() -> None:
    assert broken([sender(ONE)], [reader(ONE, b"from nowhere")]) == ["strange"]


def test_in_another_partition_than_it_was_sent_to_is_strange() -> None:
    elsewhere = reader(ONE)
    elsewhere.reads.append(Read(Place("orders", 1), 0, ONE))
    assert broken([sender(ONE)], [elsewhere]) == ["strange"]


def test_skipped() -> None:
    sent = sender(ONE, TWO, THREE, acknowledged=())
    hasty = Reader("hasty", [Read(ORDERS, 0, ONE), Read(ORDERS, 2, THREE)], True)
    assert broken([sent], [reader(ONE, TWO, THREE), hasty]) == ["skipped"]


def test_the_first_record_can_be_skipped_too() -> None:
    sent = sender(ONE, TWO, acknowledged=())
    assert broken([sent], [reader(ONE, TWO), reader(TWO, name="hasty", first=1)]) == ["skipped"]


def test_again() -> None:
    confused = Reader("confused", [Read(ORDERS, 0, ONE), Read(ORDERS, 1, TWO), Read(ORDERS, 0, ONE)], True)
    assert broken([sender(ONE, TWO)], [confused]) == ["again"]


def test_refused() -> None:
    refused = reader(ONE)
    refused.refusals.append("orders-0 at offset 1: out of range")
    assert broken([sender(ONE)], [refused]) == ["refused"]


def test_a_broken_promise_tells_some_cases_and_counts_all() -> None:
    values = tuple(f"exact:{number} x".encode() for number in range(8))
    (lost,) = broken_promises([sender(*values)], [reader()], {})
    assert lost.count == 8 and len(lost.examples) == 5
    assert str(lost).startswith("lost: exact:0, acknowledged at orders-0 offset 0, is not there; ")
    assert str(lost).endswith(" and 3 more")
