"""`python -m tests.fuzz`: one run from the command line, with its result as a line of `results.jsonl`."""

import argparse
import struct
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tests.fuzz.mutations import Mutated
from tests.fuzz.suspects import replay

RESULTS = Path(__file__).with_name("results.jsonl")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many mutated frames to send")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long, with fewer frames")
    parser.add_argument("--seed", type=int, default=None, help="what the frames are drawn from; else the time")
    parser.add_argument("--replay", metavar="HEX", help="send this one frame, with its size, and say what happens")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if options.replay:
            print(replay(_frame(options.replay), Path(home)))
            return 0
        seed = int(time.time()) if options.seed is None else options.seed
        print(f"seed {seed}", flush=True)
        result = Campaign(seed, Path(home), lambda line: print(line, flush=True)).run(options.frames, options.seconds)
    with RESULTS.open("a") as lines:
        lines.write(result.line() + "\n")
    print(result.line())
    if result.failure is not None:
        print(f"FAILED with --seed {seed}: {result.failure}", file=sys.stderr)
        if result.culprit is not None:
            print(f"Again: python -m tests.fuzz --replay {result.culprit}", file=sys.stderr)
        return 1
    return 0


def _frame(text: str) -> Mutated:
    frame = bytes.fromhex(text)
    (size,) = struct.unpack_from(">i", frame)
    return Mutated(frame[4:], None if size == len(frame) - 4 else size)


if __name__ == "__main__":
    sys.exit(main())
