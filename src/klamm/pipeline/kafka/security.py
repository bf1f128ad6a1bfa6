"""TLS and SASL as Java clients are told about them, said so that librdkafka understands.

Users of Spark's connector have options such as `kafka.sasl.jaas.config` in their programs, and those should go on
working. Most names are the same on both sides. A JAAS line becomes a user name and a password; certificates in PEM
get the names librdkafka has for them; Java's own key stores are refused, because only Java reads them.
"""

import re
from collections.abc import Mapping

from klamm.pipeline.kafka.problems import ClusterProblem

_LOGIN = re.compile(r"\s*(?P<module>[\w.$]+)\s+(required|requisite|sufficient|optional)\s+(?P<rest>.*?);?\s*$", re.S)
_GIVEN = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")
_WITH_PASSWORD = ("PlainLoginModule", "ScramLoginModule")
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}


def with_security(properties: Mapping[str, str]) -> dict[str, str]:
    """The same properties; those of a Java client's security as librdkafka's."""
    result = {_RENAMED.get(name, name): value for name, value in properties.items()}
    if "sasl.jaas.config" in result:
        result.update(_of_login(result.pop("sasl.jaas.config")))
    if result.get("ssl.endpoint.identification.algorithm") == "":
        result["ssl.endpoint.identification.algorithm"] = "none"
    _trust(result)
    _identity(result)
    return result


def _of_login(line: str) -> dict[str, str]:
    found = _LOGIN.match(line)
    module = found["module"].rpartition(".")[2] if found else ""
    if found is None or module not in _WITH_PASSWORD:
        raise ClusterProblem(
            f"kafka.sasl.jaas.config names {module or 'no login module that can be read'}; outside Java only those "
            f"with a user name and a password ({', '.join(_WITH_PASSWORD)}) can be followed. Leave it out, and give "
            "librdkafka's own options instead, such as kafka.sasl.oauthbearer.* or kafka.sasl.kerberos.*."
        )
    given = {name: _plain(one or two or three) for name, one, two, three in _GIVEN.findall(found["rest"])}
    missing = [name for name in ("username", "password") if name not in given]
    if missing:
        raise ClusterProblem(
            f'kafka.sasl.jaas.config has no {" and no ".join(missing)}. It reads: {module} required username="…" '
            'password="…";'
        )
    return {"sasl.username": given["username"], "sasl.password": given["password"]}


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)


def _trust(result: dict[str, str]) -> None:
    """Whom to believe. Java's trust store is a file of its own kind, unless it is said to be PEM."""
    kind = result.pop("ssl.truststore.type", "JKS").upper()
    result.pop("ssl.truststore.password", None)
    if "ssl.truststore.location" not in result:
        return
    place = result.pop("ssl.truststore.location")
    if kind != "PEM":
        raise _only_java("kafka.ssl.truststore.location", place, "kafka.ssl.ca.location")
    result["ssl.ca.location"] = place


def _identity(result: dict[str, str]) -> None:
    """Who we are. librdkafka reads PKCS#12 under the same name as Java."""
    kind = result.pop("ssl.keystore.type", "").upper()
    place = result.get("ssl.keystore.location")
    if place is None or kind == "PKCS12" or (not kind and place.endswith((".p12", ".pfx"))):
        return
    if kind != "PEM":
        raise _only_java(
            "kafka.ssl.keystore.location", place, "kafka.ssl.certificate.location and kafka.ssl.key.location"
        )
    del result["ssl.keystore.location"]
    result["ssl.certificate.location"] = result["ssl.key.location"] = place


def _only_java(option: str, place: str, instead: str) -> ClusterProblem:
    return ClusterProblem(
        f"{option} ({place}) is a key store that only Java reads. Export it as PEM (keytool -importkeystore to PKCS12, "
        f"then openssl pkcs12), and give {instead}."
    )
