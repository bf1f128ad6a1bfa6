"""A topic's settings: what it sets itself, over what its broker has for every topic.

What a client asks for is checked here, with Kafka's error and words; what comes out is values, not text.
"""

from collections.abc import Mapping

from klamm.config.broker_config import BrokerConfig
from klamm.config.kinds import BadValueError, Value
from klamm.config.names import nearest_of_topic
from klamm.config.tables import Status, topic_settings
from klamm.errors import ErrorCode, KafkaError


def topic_values(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Every setting of a topic with its value. An override that this version does not know is left out."""
    values = dict(config.topic_defaults)
    settings = topic_settings()
    for name, text in overrides.items():
        if name in settings:
            values[name] = validate_topic_config(name, text)
    return values


def validate_topic_config(name: str, value: str | None) -> Value:
    """What one setting's text means; `KafkaError(INVALID_CONFIG)` when a topic cannot have it."""
    setting = topic_settings().get(name)
    if setting is None:
        close = nearest_of_topic(name)
        raise _invalid(f"Unknown topic config name: {name}" + (f" (did you mean {close}?)" if close else ""))
    if value is None:
        raise _invalid(f"Null value not supported for topic configs: {name}")
    try:
        meaning = setting.parsed(value)
    except BadValueError as problem:
        raise _invalid(str(problem)) from None
    if setting.status is Status.NOT_YET and meaning != setting.parsed_default():
        raise _invalid(f"{name}: {setting.documentation}")
    return meaning


def validate_topic_configs(config: BrokerConfig, overrides: Mapping[str, str | None]) -> None:
    """All that a topic would set, one by one and together; `KafkaError(INVALID_CONFIG)` for the first that is wrong."""
    checked = {name: validate_topic_config(name, overrides[name]) for name in sorted(overrides)}
    values = {**config.topic_defaults, **checked}
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int) and isinstance(most, int)
    if least > most:
        shown = f"min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        raise _invalid(f"conflict topic config setting {shown}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
