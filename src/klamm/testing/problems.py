"""What a test can be told when it asks too much, each in words for the person who reads the report."""

from klamm.local.problems import LocalError


class NotPossible(LocalError):  # noqa: N818
    """This cluster cannot do that, or not now, or has nothing of that name."""


class NotInTime(LocalError):  # noqa: N818
    """What was waited for did not come about."""


class TopicRefused(LocalError):  # noqa: N818
    """The cluster did not create a topic."""
