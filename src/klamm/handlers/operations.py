"""What a client may do, as the bit fields of Metadata, DescribeCluster and the APIs of groups. Without access control:
everything."""

from enum import IntEnum


class Operation(IntEnum):
    """Operations by Kafka's numbers; bit n of a field stands for operation n."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def bit_field(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


ON_CLUSTER = bit_field(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
ON_TOPIC = bit_field(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_GROUP = bit_field(
    Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
)
NOT_ASKED = -(2**31)
