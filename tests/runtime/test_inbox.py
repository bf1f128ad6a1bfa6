"""What has arrived and is not yet a frame, and frames that were not taken."""

from random import Random

import pytest

from klamm.codec.primitives import Malformed
from klamm.runtime.inbox import OFFERED_AGAIN, Inbox


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("seed", range(20))
def test_frames_come_whole_however_the_bytes_arrive(seed: int) -> None:
    """Cut anywhere, some frames refused each time: in the end every frame came once, in order."""
    random = Random(seed)
    contents = [random.randbytes(random.choice((10, 11, 200, 5_000))) for _ in range(300)]
    stream = b"".join(map(framed, contents))
    inbox, taken, position = Inbox(10_000), [], 0
    while position < len(stream) or inbox.untaken:
        if inbox.untaken:
            frames = inbox.frames_again()
        else:
            count = random.randint(1, 20_000)
            frames = inbox.frames(memoryview(bytearray(stream[position : position + count])))
            position += count
        kept = random.randint(0, len(frames))
        taken += [bytes(frame) for frame in frames[:kept]]
        if frames[kept:]:
            inbox.put_back(frames[kept:])
    assert taken == contents
    assert inbox.size == 0


def test_frames_that_were_not_taken_are_offered_a_few_at_a_time() -> None:
    """However many wait behind one, looking at it again costs the same."""
    inbox = Inbox(10_000)
    frames = inbox.frames(memoryview(bytearray(framed(b"x" * 20) * 1_000)))
    inbox.put_back(frames[1:])
    copied = inbox.untaken
    for _ in range(500):
        offered = inbox.frames_again()
        assert len(offered) == OFFERED_AGAIN
        inbox.put_back(offered[1:])
        assert inbox.untaken is copied, "and nothing is copied again"


def test_an_impossible_size_is_told_after_the_frames_before_it() -> None:
    inbox = Inbox(10_000)
    assert len(inbox.frames(memoryview(bytearray(framed(b"x" * 20) + b"\xff\xff\xff\xff")))) == 1
    with pytest.raises(Malformed):
        inbox.check()
