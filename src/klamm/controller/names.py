"""Which names a topic may have.

Letters, digits, dot, underscore and dash, at most 249 of them, because a partition's directory is named after it. Dot
and underscore become the same character in metric names, so two topics may not differ in that alone.
"""

import re

CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})
MAX_LENGTH = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]*")


def topic_name_problem(name: str) -> str | None:
    """What is wrong with a name, in words for the person who chose it; None if nothing is."""
    if not name:
        return "Topic name is invalid: it is empty"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' means a directory"
    if len(name) > MAX_LENGTH:
        return f"Topic name is invalid: it has {len(name)} characters, at most {MAX_LENGTH} are allowed"
    if not _LEGAL.fullmatch(name):
        return f"Topic name is invalid: '{name}' has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """The same for all names that a metric could not tell apart."""
    return name.replace(".", "_")
