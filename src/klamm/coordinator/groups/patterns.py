"""Subscriptions by regular expression (KIP-848): the broker finds the topics, so the broker has to run the pattern.

Somebody else's pattern must not stop a broker. RE2 takes time linear in what it reads, whatever the pattern, and
gives up on one that would take more memory than it may; it has no back-references and no look-around, and neither has
Kafka's RE2/J. A pattern has to match the whole name. The library is loaded when the first pattern comes: most brokers
never see one.
"""

from collections.abc import Iterable
from typing import Protocol, cast

from klamm.errors import ErrorCode, KafkaError

MOST_MEMORY_BYTES = 1024 * 1024
"""For one pattern with all it needs while matching. Some thousand names with bars between them fit. The library keeps
the last 128 patterns, which is what keeps us from having to."""


class Pattern(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


def matching(pattern: str, topic_names: Iterable[str]) -> frozenset[str]:
    """The names that the pattern matches from beginning to end."""
    matches = compiled(pattern).fullmatch
    return frozenset(name for name in topic_names if matches(name))


def compiled(pattern: str) -> Pattern:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.max_mem = MOST_MEMORY_BYTES
    options.log_errors = False  # It would write to our standard error what clients get wrong.
    options.never_capture = True
    try:
        return cast(Pattern, re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
    except UnicodeEncodeError as error:
        reason = str(error)
    message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression of RE2: {reason}."
    raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
