"""Options as users of Spark's connector write them, and what librdkafka is told."""

import pytest

from klamm.pipeline.sink.problems import WrongOption
from klamm.pipeline.sink.settings import LIKE_JAVA, producer_settings, topic_of

SOMEWHERE = {"kafka.bootstrap.servers": "127.0.0.1:1"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b c";'


def made(**options: str) -> dict[str, str]:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in options.items()}
    return producer_settings({**SOMEWHERE, **given})


def test_without_options_it_is_idempotent_and_like_java() -> None:
    assert made() == {**LIKE_JAVA, "bootstrap.servers": "127.0.0.1:1", "enable.idempotence": "true"}


@pytest.mark.parametrize(
    ("java", "value", "ours", "as_value"),
    [
        ("linger.ms", "20", "linger.ms", "20"),
        ("compression.type", "zstd", "compression.type", "zstd"),
        ("batch.size", "50000", "batch.size", "50000"),
        ("max.request.size", "5000000", "message.max.bytes", "5000000"),
        ("buffer.memory", "33554432", "queue.buffering.max.kbytes", "32768"),
        ("security.protocol", "SSL", "security.protocol", "SSL"),
        ("ssl.endpoint.identification.algorithm", "", "ssl.endpoint.identification.algorithm", "none"),
        ("Linger.Ms", "20", "linger.ms", "20"),
    ],
)
def test_settings_have_their_equivalents(java: str, value: str, ours: str, as_value: str) -> None:
    assert producer_settings({**SOMEWHERE, f"kafka.{java}": value})[ours] == as_value


def test_the_level_of_the_codec_that_is_used_counts() -> None:
    settings = made(compression_type="zstd", compression_zstd_level="7", compression_gzip_level="9")
    assert settings["compression.level"] == "7"
    assert "compression.gzip.level" not in settings


def test_what_only_tunes_java_is_left_out_and_options_of_spark_are_not_the_producers() -> None:
    settings = producer_settings({**SOMEWHERE, "kafka.max.block.ms": "1", "topic": "t", "checkpointLocation": "/x"})
    assert settings == made()


@pytest.mark.parametrize("asked", [{"acks": "1"}, {"retries": "0"}, {"max_in_flight_requests_per_connection": "6"}])
def test_what_excludes_idempotence_turns_it_off_and_both_is_refused(asked: dict[str, str]) -> None:
    assert made(**asked)["enable.idempotence"] == "false"
    with pytest.raises(WrongOption, match=r"enable\.idempotence"):
        made(**asked, enable_idempotence="true")


@pytest.mark.parametrize("name", ["key.serializer", "value.serializer", "partitioner.class", "interceptor.classes"])
def test_java_classes_are_refused(name: str) -> None:
    with pytest.raises(WrongOption, match=f"kafka.{name}"):
        producer_settings({**SOMEWHERE, f"kafka.{name}": "org.example.Class"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("lingr.ms", "5", 'No such configuration property: "lingr.ms"'),
        ("compression.type", "brotli", "Invalid value"),
        ("buffer.memory", "much", "has to be a whole number"),
        ("bootstrap.servers", " ", "kafka.bootstrap.servers is missing"),
    ],
)
def test_what_nobody_knows_is_refused_in_one_paragraph(name: str, value: str, said: str) -> None:
    with pytest.raises(WrongOption, match=said) as refused:
        producer_settings({**SOMEWHERE, f"kafka.{name}": value})
    assert "\n" not in str(refused.value)


def test_a_jaas_line_is_a_user_and_a_password() -> None:
    settings = made(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN)
    assert (settings["sasl.username"], settings["sasl.password"]) == ("me", 'a"b c')
    assert "sasl.jaas.config" not in settings


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "names Krb5LoginModule"),
        ("who knows", "no login module that can be read"),
        ('ScramLoginModule required username="me";', "has no password"),
    ],
)
def test_other_jaas_lines_are_refused_without_telling_a_secret(line: str, said: str) -> None:
    with pytest.raises(WrongOption, match=said):
        made(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=line)


def test_key_stores_of_java_are_refused_and_pem_is_taken() -> None:
    with pytest.raises(WrongOption, match=r"only Java reads.*kafka\.ssl\.ca\.location"):
        made(ssl_truststore_location="/x/trust.jks", ssl_truststore_password="secret")
    with pytest.raises(WrongOption, match=r"only Java reads.*kafka\.ssl\.certificate\.location"):
        made(ssl_keystore_location="/x/key.jks")
    settings = made(ssl_truststore_location="/x/ca.pem", ssl_truststore_type="PEM")
    assert settings["ssl.ca.location"] == "/x/ca.pem"


def test_the_topic_is_trimmed_and_found_whatever_its_case() -> None:
    assert topic_of({"Topic": " orders "}) == "orders"
    assert topic_of({}) is None
