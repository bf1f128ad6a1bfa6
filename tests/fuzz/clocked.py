"""The longest step of any frame of a mebibyte: `python -m tests.fuzz.clocked [KEY ...]`, part of `make fuzz`.

Frames as in `test_multiplied.py`, only long, to a node with a topic of 2,000 partitions and a group of 2,000 members,
in processor time. A step over 50 ms, or 64 MiB more memory, fails. Collections of garbage happen as in a broker.
"""

import gc
import sys

from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY
from tests.fuzz.corpus import UNREGISTER_BROKER
from tests.fuzz.crowded import crowded
from tests.fuzz.multiplied import DISTINCT, frames
from tests.fuzz.steps import Clock, cost_of

FRAME_BYTES = 1 << 20
MOST_MS = 50.0
MOST_BYTES = 64 << 20


def main(keys: list[int]) -> int:
    failed = 0
    for key in keys:
        # A node of its own for each API: what one of them creates would be in the way of the next.
        world, topic_id = crowded(2_000, 2_000)
        gc.collect()
        gc.freeze()
        worst, count = (0.0, ""), 0
        for frame in frames(FRAME_BYTES, topic_id, [key]):
            cost = cost_of(world, frame.body, Clock())
            worst = max(worst, (cost.longest, str(frame)))
            count += 1
            if frame.kind == DISTINCT and frame.version == API_BY_KEY[key].max_version:
                peak_bytes = cost_of(world, frame.body, None).peak_bytes
                if peak_bytes > MOST_BYTES:
                    failed += 1
                    print(f"TOO MUCH {peak_bytes >> 20} MiB for {frame}", flush=True)
        if worst[0] > MOST_MS:
            failed += 1
        word = "TOO LONG" if worst[0] > MOST_MS else "ok"
        print(
            f"{word:8} {API_BY_KEY[key].name:30} {count:3} frames, longest step {worst[0]:6.1f} ms: {worst[1]}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    named = [int(each) for each in sys.argv[1:]]
    sys.exit(main(named or [key for key in sorted(TABLE) if key != UNREGISTER_BROKER]))
