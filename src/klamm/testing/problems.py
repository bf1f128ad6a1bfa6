"""What a test can be told when it asks too much, each in words for the person who reads the report."""

from klamm.local.problems import LocalError


class NotPossible(LocalError):  # noqa: N818
    """This kind of cluster cannot do that, or not now."""


class NotInTime(LocalError):  # noqa: N818
    """What was waited for did not come about."""


class TopicRefused(LocalError):  # noqa: N818
    """The cluster did not create a topic."""
