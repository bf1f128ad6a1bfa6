"""A batch that cannot be taken, with the error code that Kafka gives to its producer."""

from klamm.errors import ErrorCode, KafkaError


class InvalidBatch(KafkaError, ValueError):  # noqa: N818
    """Raised at the door for a producer's bytes and wherever stored bytes turn out to be damaged."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(code, message)
