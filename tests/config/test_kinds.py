"""Values are read as strictly as Java reads them and written as Java writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.config.kinds import BadValueError, Kind, Value, parsed, written


@given(
    st.one_of(
        st.tuples(st.just(Kind.LONG), st.integers(-(1 << 63), (1 << 63) - 1)),
        st.tuples(st.just(Kind.INT), st.integers(-(1 << 31), (1 << 31) - 1)),
        st.tuples(st.just(Kind.SHORT), st.integers(-(1 << 15), (1 << 15) - 1)),
        st.tuples(st.just(Kind.DOUBLE), st.floats(allow_nan=False, allow_infinity=False)),
        st.tuples(st.just(Kind.BOOLEAN), st.booleans()),
        st.tuples(st.just(Kind.LIST), st.lists(st.from_regex(r"[a-z:/.]+", fullmatch=True)).map(tuple)),
    )
)
def test_what_is_written_is_read_back(pair: tuple[Kind, Value]) -> None:
    kind, value = pair
    text = written(value)
    assert text is not None
    assert parsed("some.setting", kind, f"\t {text} ") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.INT, "2147483648"),
        (Kind.INT, "1_000"),
        (Kind.INT, "0x10"),
        (Kind.INT, "1.0"),
        (Kind.INT, "--1"),
        (Kind.INT, "١"),
        (Kind.SHORT, "40000"),
        (Kind.LONG, "9" * 5000),
        (Kind.LONG, ""),
        (Kind.DOUBLE, "1_0"),
        (Kind.DOUBLE, "NaN"),
        (Kind.DOUBLE, "1e999"),
        (Kind.DOUBLE, "half"),
        (Kind.BOOLEAN, "1"),
    ],
)
def test_what_is_no_value_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(BadValueError):
        parsed("some.setting", kind, text)
