"""`python -m klamm.testing.node`: one node of a test's cluster, as `klamm broker` is one of anybody's.

The difference is its links, which the test can cut, and that it does not outlive the test.
"""

import sys

from klamm.config import BrokerConfig, ConfigError
from klamm.runtime.dialer import Dialing
from klamm.runtime.loop import Loop
from klamm.runtime.problems import CannotStart
from klamm.runtime.process import run_broker
from klamm.testing.control import Beginning
from klamm.testing.links import LinkedDialer


def main() -> int:
    beginning = Beginning()

    def make_dialer(loop: Loop, node: Dialing) -> LinkedDialer:
        dialer = LinkedDialer(loop, node, beginning.links)
        beginning.listen(loop, dialer)
        return dialer

    try:
        config = BrokerConfig.from_properties((), beginning.properties)
        return 0 if run_broker(config, beginning.cluster_id, make_dialer) else 1
    except (ConfigError, CannotStart) as error:
        print(f"klamm: the node cannot start: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
