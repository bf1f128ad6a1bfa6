"""DescribeLogDirs (key 35): a broker's directories, and how much each partition takes there.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, string, struct


@struct
class DescribableLogDirTopic:
    topic: str = string()
    partitions: list[int] = array(int32())


@message(versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


@struct
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@struct
class DescribeLogDirsTopic:
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1)
    usable_bytes: int = int64(versions="4+", default=-1)
    is_cordoned: bool = boolean(versions="5+")


@message(versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+")
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
