"""Why a node cannot start, in words for the person who called."""


class CannotStart(Exception):  # noqa: N818
    """Why, and what to do about it, in a sentence."""


class AddressTaken(CannotStart):
    """Somebody else listens there."""

    def __init__(self, text: str, port: int) -> None:
        super().__init__(text)
        self.port = port
