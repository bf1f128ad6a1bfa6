"""Offsets of a stream stand in a checkpoint. One format must not go on with the other's as if it were its own."""

import pytest

from tests.compat.spark.both import Both

OPTIONS = {"subscribe": "sparse", "startingOffsets": "earliest"}


@pytest.mark.parametrize(("first", "second"), [("klamm", "kafka"), ("kafka", "klamm")])
def test_a_checkpoint_of_one_is_refused_by_the_other(both: Both, first: str, second: str) -> None:
    assert both.stream(first, OPTIONS, "shared").rows
    refused = both.refusal(second, OPTIONS, streaming=True, checkpoint="shared")
    assert both.stream(first, OPTIONS, "shared").rows == [], "and it is still good for the one that wrote it"
    if second == "klamm":
        assert "was not written by format('klamm')" in refused
        assert "startingOffsets" in refused, "it says how to go on"
