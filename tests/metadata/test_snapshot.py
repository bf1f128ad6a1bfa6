"""A snapshot's records, replayed into nothing, give the image that they were taken from."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.metadata import records as metadata_records
from klamm.metadata.delta import Delta
from klamm.metadata.image import EMPTY, Image
from klamm.metadata.snapshot import records_of
from tests.metadata.histories import Twin, drawn_history


def replayed(image: Image) -> Image:
    delta = Delta(EMPTY)
    for record in records_of(image):
        # As the file has it.
        delta.replay(metadata_records.decode(metadata_records.encode(record)))
    return delta.finished(image.offset, image.epoch)[0]


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 120))
def test_an_image_is_what_its_records_add_up_to(seed: int, length: int) -> None:
    twin, delta = Twin(), Delta(EMPTY)
    for record in drawn_history(Random(seed), length):
        twin.replay(record)
        delta.replay(record)
    image, _ = delta.finished(length, 3)
    again = replayed(image)
    assert again == image
    twin.has_become(again)


def test_nothing_has_no_records() -> None:
    assert list(records_of(EMPTY)) == [] and replayed(EMPTY) == EMPTY
