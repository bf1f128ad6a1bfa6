"""What can go wrong when rows are written, in the words people read. Each text is a paragraph that says what to do."""


class WrongOption(ValueError):  # noqa: N818
    """An option that is missing, unknown, or means nothing outside Java."""


class WrongColumns(ValueError):  # noqa: N818
    """The rows are not what a topic takes: a column is missing, or of another type, or has a null where none may be."""


class NotDelivered(RuntimeError):  # noqa: N818
    """The cluster did not take a record. The task fails; Spark may try it again."""
