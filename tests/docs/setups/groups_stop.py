"""The members of `groups_begin` leave, and the groups are empty."""

from tests.docs.setups.groups_begin import READY, SECONDS, STOP
from tests.harness.waiting import wait_until


def main() -> None:
    STOP.touch()
    wait_until(lambda: not READY.exists(), "the members have left", SECONDS)


if __name__ == "__main__":
    main()
