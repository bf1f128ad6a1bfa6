"""What keeps a run from being run: not a broken promise, but no run at all."""


class ChaosError(Exception):
    """A sentence for the person who asked. No stack trace is needed."""


class NoNetwork(ChaosError):  # noqa: N818
    """There can be no network namespaces here, and why."""


class NoDisks(ChaosError):  # noqa: N818
    """There can be no small disks here, and why."""
