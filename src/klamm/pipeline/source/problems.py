"""Mistakes of those who write a query, in the words they read. Each text is a paragraph that says what to do."""


class WrongOption(ValueError):  # noqa: N818
    """An option that is missing, unknown, or makes no sense."""


class WrongCheckpoint(ValueError):  # noqa: N818
    """The checkpoint was written by somebody else, or for another cluster."""


class DataLost(Exception):  # noqa: N818
    """Records that the query had still to read are not in the cluster any more."""
