"""A note beside each offset that a group commits; Kafka calls it metadata.

It says itself where it ends. librdkafka copies what it has read without the zero that C's strings end with, and its
Python client reads on until one comes by chance: what stands behind the end is anything, and maybe no text at all.
"""

END = "\n"


def closed(note: str) -> str:
    return f"{note}{END}" if note else ""


def note_in(metadata: str | None) -> str:
    """Without what is behind its end. Somebody else's has none."""
    return (metadata or "").partition(END)[0]
