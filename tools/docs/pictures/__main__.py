"""`python -m tools.docs.pictures`: draws docs/pictures/*.svg again, from a live cluster; about half a minute."""

import argparse
from pathlib import Path

from tools.docs.pictures.live import six_brokers
from tools.docs.pictures.placing import draw_brokers, draw_placement, draw_topic
from tools.docs.pictures.replicating import draw_acks, draw_committed, draw_failover, draw_isr
from tools.docs.pictures.sharing import draw_groups

PLACE = Path(__file__).parent.parent.parent.parent / "docs" / "pictures"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.docs.pictures", description=__doc__)
    parser.add_argument("--into", type=Path, default=PLACE, help="docs/pictures unless told otherwise")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    with six_brokers() as live:
        # The first topic of a new cluster begins at the first broker of the list (S8).
        live.create("invoice", 10, 3)
        for draw in (
            draw_brokers,
            draw_placement,
            draw_topic,
            draw_isr,
            draw_committed,
            draw_acks,
            draw_groups,
            draw_failover,
        ):
            # A picture that pauses a follower must not find it leading since the picture before.
            live.wait_as_placed("invoice")
            draw(live, options.into)
            print(draw.__name__.removeprefix("draw_"), flush=True)


if __name__ == "__main__":
    main()
