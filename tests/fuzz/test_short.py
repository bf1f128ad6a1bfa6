"""Twenty thousand mutated frames over sockets: what `make fuzz` does with a million, in the time a test may take."""

from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign

FRAMES = 10_000


@pytest.mark.parametrize("seed", [20, 21])
def test_a_broker_stays_well_and_serves_others_under_mutated_frames(tmp_path: Path, seed: int) -> None:
    result = Campaign(seed, tmp_path).run(FRAMES, seconds=60)
    assert result.failure is None, result.line()
    assert result.frames >= FRAMES
    # The mix is worth something only if a good part of it gets through.
    assert result.answered > FRAMES // 4 and result.closed > FRAMES // 10, result.line()
