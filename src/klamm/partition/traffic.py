"""What happened to the replicas of one topic on this broker: sums, added to once a batch, never once a record."""


class Traffic:
    __slots__ = (
        "bytes_in",
        "bytes_out",
        "isr_expands",
        "isr_shrinks",
        "messages_in",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        """What producers wrote; a retry of what was there already does not count."""
        self.bytes_in = 0
        self.bytes_out = 0
        """What consumers were given."""
        self.replication_bytes_in = 0
        """What was taken from leaders elsewhere."""
        self.replication_bytes_out = 0
        """What followers elsewhere were given."""

        self.isr_shrinks = 0
        """How often replicas left the in-sync ones of a partition that is led here, by whose wish ever."""
        self.isr_expands = 0

    def add(self, other: "Traffic") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
