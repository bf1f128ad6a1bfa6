"""Where wire meets broker: one API, one file, one function. `TABLE` is the list of APIs that are served.

A handler is imported when its API is first asked for. ApiVersions and the compatibility table in the docs follow from
this list.
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
    10: "find_coordinator",
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
    44: "incremental_alter_configs",
    60: "describe_cluster",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}


def handler(key: int) -> Handler:
    return cast(Handler, import_module(f"klamm.handlers.{TABLE[key]}").handle)
