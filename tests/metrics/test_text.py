"""Bytes from strangers and text for scrapers: what is said is understood or refused, what is told is read back."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.exposition import family_text, header, histogram, number
from klamm.node.served import Times
from klamm.runtime.http_head import MOST_BYTES, BadHead, Head, read_head
from klamm.runtime.metrics.traffic import BOUNDS_US, timed
from tests.metrics.scraping import parsed

ALMOST = st.sampled_from([b"GET", b" ", b"/metrics", b"HTTP/1.1", b"\r\n", b"Host: here", b":", b"\x00", b"\xff", b"?"])


@given(st.lists(st.one_of(ALMOST, st.binary(max_size=20)), max_size=12).map(b"".join))
def test_any_bytes_become_a_head_or_are_refused_or_waited_for(heard: bytes) -> None:
    try:
        head = read_head(heard)
    except BadHead as problem:
        assert problem.status in (400, 431, 505)
    else:
        assert head is None or (isinstance(head, Head) and head.path.startswith("/") and b"\r\n\r\n" in heard)


@given(st.binary(min_size=1).filter(lambda some: b"\r\n\r\n" not in some))
def test_nobody_is_waited_for_who_has_said_too_much(some: bytes) -> None:
    try:
        assert read_head(b"GET /" + some * (MOST_BYTES // len(some) + 1)) is not None
    except BadHead as problem:
        assert problem.status in (400, 431)


@given(st.dictionaries(st.sampled_from(["group", "topic"]), st.text()), st.integers(0, 1 << 62))
def test_labels_of_any_text_and_every_digit_are_read_back(labels: dict[str, str], value: int) -> None:
    page = parsed(family_text("orders_total", "counter", "What a\nperson \\ reads.", [(labels, value)]))
    (((_, found), read),) = page.samples.items()
    assert dict(found) == labels and read == float(value)
    assert page.helps == {"orders_total": r"What a\nperson \\ reads."}
    assert number(value) == str(value)


@given(st.lists(st.integers(0, 1 << 40), max_size=50))
def test_a_histogram_has_everything_that_took_less_than_its_bound(took_us: list[int]) -> None:
    times = Times()
    for each in took_us:
        times.note(each)
    lines = [f"steps{behind} {number(value)}\n" for behind, value in timed({}, times, unit_us=1)]
    page = parsed(header("steps", "histogram", "How long.") + "".join(lines))
    for bound in BOUNDS_US:
        assert page.value("steps_bucket", le=float(bound)) == sum(each < bound for each in took_us)
    assert page.value("steps_bucket", le="+Inf") == page.value("steps_count") == len(took_us)
    assert page.value("steps_sum") == sum(took_us)


def test_a_histogram_without_anything_has_its_buckets_all_the_same() -> None:
    assert [value for _, value in histogram({"a": 1}, [1.0, 2.0], [0, 0, 0], 0.0)] == [0, 0, 0, 0.0, 0]
