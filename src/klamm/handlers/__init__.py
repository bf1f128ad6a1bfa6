"""Where wire meets broker: one API, one file, one function. `TABLE` is the list of APIs that are served.

A handler is imported when its API is first asked for. An Envelope has none: what is within is handled. ApiVersions and
the compatibility table in the docs follow from this list.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, cast

from klamm.broker.answer import Answer
from klamm.broker.call import Call

Handler: TypeAlias = Callable[[Any, Call], Answer]

TABLE: dict[int, str] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    37: "create_partitions",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    52: "vote",
    53: "begin_quorum_epoch",
    54: "end_quorum_epoch",
    55: "describe_quorum",
    56: "alter_partition",
    57: "update_features",
    58: "envelope",
    59: "fetch_snapshot",
    60: "describe_cluster",
    62: "broker_registration",
    63: "broker_heartbeat",
    64: "unregister_broker",
    67: "allocate_producer_ids",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    80: "add_raft_voter",
    81: "remove_raft_voter",
}


def handler(key: int) -> Handler:
    return cast(Handler, import_module(f"klamm.handlers.{TABLE[key]}").handle)
