"""The cluster that docs/groups.md looks at: `invoice` with three groups, two of them with members that stay.

The members run on behind this script until `groups_stop` has made the file that they look for.
"""

import subprocess
import sys
import time
from pathlib import Path

from tests.cli.grouping import commit, members, produce

STOP = Path("members.stop")
READY = Path("members.ready")
BOOTSTRAP = "127.0.0.1:9092"
COMMITTED = {0: 30, 1: 28, 2: 25, 3: 30}
SECONDS = 60.0


def main() -> None:
    quick = [f"--set=group.consumer.{name}heartbeat.interval.ms=500" for name in ("min.", "")]
    subprocess.run(["klamm", "up", "--detach", *quick], check=True)
    for topic, partitions in (("invoice", "4"), ("orders", "1")):
        subprocess.run(
            ["klamm", "topic", "create", topic, "--partitions", partitions, "--replication", "3"], check=True
        )
    produce(BOOTSTRAP, "invoice", {partition: [1_000] * 30 for partition in range(4)})
    produce(BOOTSTRAP, "orders", {0: [1_000] * 9})
    commit(BOOTSTRAP, "audit", "orders", {0: 5})
    commit(BOOTSTRAP, "billing", "invoice", COMMITTED)
    subprocess.Popen([sys.executable, "-m", __spec__.name, "stay"], start_new_session=True)
    wait_for(READY)


def stay() -> None:
    of_billing = [{"group.protocol": "consumer", "client.id": f"billing-{name}"} for name in "ab"]
    with (
        members(BOOTSTRAP, "billing", "invoice", 4, *of_billing),
        members(BOOTSTRAP, "shipping", "invoice", 4, {"client.id": "shipping-a"}),
    ):
        READY.touch()
        wait_for(STOP)
    READY.unlink()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"there is no {path} after {SECONDS:.0f} s"
        time.sleep(0.02)


if __name__ == "__main__":
    stay() if sys.argv[1:] == ["stay"] else main()
