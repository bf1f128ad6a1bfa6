"""Derives `src/klamm/wire/messages/*.py` from the schemas inside Kafka's own client jar.

    python tools/derive_messages.py [--jars DIRECTORY]

The jar knows every message it can read: for each version which fields, in which order, of which type, nullable or
tagged, and (from a fresh object) with which default. `DumpSchemas.java` prints that as JSON, this script folds the
versions of a message into one table and writes it down. Only facts are taken; what an API is for is said here in our
own words. kio, which is generated from Kafka's definitions and not from the jar, is the referee of the result
(tests/codec/test_against_kio.py), so that two independent readings have to agree.

The directory holds Kafka's jars (`libs` of a Kafka release); KLAMM_KAFKA_JARS or `.jars/kafka` if not given.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MESSAGES = ROOT / "src" / "klamm" / "wire" / "messages"

PURPOSE = {
    "Produce": "a producer's record batches, one for each partition.",
    "Fetch": "record batches from an offset on, for consumers, followers and the metadata quorum alike.",
    "ListOffsets": "which offset a partition has at a time, at its beginning or at its end.",
    "Metadata": "which brokers there are, and who leads which partition.",
    "OffsetCommit": "a group writes down how far it has read.",
    "OffsetFetch": "how far a group has read.",
    "FindCoordinator": "which broker looks after a group, a transactional id or a share partition.",
    "JoinGroup": "a member enters a classic group and waits for the others.",
    "Heartbeat": "a member of a classic group is alive, and learns whether the group rebalances.",
    "LeaveGroup": "members leave a classic group.",
    "SyncGroup": "the leader of a classic group hands out the assignment, members receive theirs.",
    "DescribeGroups": "classic groups with their members.",
    "ListGroups": "the groups a broker coordinates.",
    "SaslHandshake": "which SASL mechanism a connection will use.",
    "ApiVersions": "which APIs and versions this broker serves, and the cluster's feature levels.",
    "CreateTopics": "new topics with partitions, replicas and settings.",
    "DeleteTopics": "topics to remove, by name or id.",
    "DeleteRecords": "moves the beginning of partitions forward.",
    "InitProducerId": "a producer's id and epoch; with a transactional id it fences the ones before.",
    "OffsetForLeaderEpoch": "where a leader epoch ended: the question before truncating.",
    "AddPartitionsToTxn": "partitions that a transaction is going to write.",
    "AddOffsetsToTxn": "a group whose offsets a transaction is going to commit.",
    "EndTxn": "commit or abort.",
    "WriteTxnMarkers": "the coordinator tells partitions how a transaction ended.",
    "TxnOffsetCommit": "a group's offsets as part of a transaction.",
    "DescribeAcls": "access rules that match a filter.",
    "CreateAcls": "new access rules.",
    "DeleteAcls": "removes the access rules that match filters.",
    "DescribeConfigs": "settings of topics, brokers and groups with where each value comes from.",
    "AlterConfigs": "replaces all settings of a resource; superseded by the incremental way.",
    "AlterReplicaLogDirs": "moves replicas to another directory of the same broker.",
    "DescribeLogDirs": "a broker's directories, and how much each partition takes there.",
    "SaslAuthenticate": "one round of a SASL conversation.",
    "CreatePartitions": "more partitions for topics there already are.",
    "CreateDelegationToken": "a token to authenticate with instead of a password.",
    "RenewDelegationToken": "a token shall live longer.",
    "ExpireDelegationToken": "a token shall end at a given time, or now.",
    "DescribeDelegationToken": "the tokens of some owners.",
    "DeleteGroups": "removes empty groups with their offsets.",
    "ElectLeaders": "asks for a leader election, preferred or unclean.",
    "IncrementalAlterConfigs": "sets, deletes, appends or subtracts single settings.",
    "AlterPartitionReassignments": "partitions shall move to other replicas, or stop moving.",
    "ListPartitionReassignments": "partitions that are moving.",
    "OffsetDelete": "forgets a group's offsets of some partitions.",
    "DescribeClientQuotas": "quotas of users, clients and addresses.",
    "AlterClientQuotas": "sets and removes quotas.",
    "DescribeUserScramCredentials": "which users have SCRAM credentials, never the secrets.",
    "AlterUserScramCredentials": "sets and removes SCRAM credentials.",
    "Vote": "a candidate of the metadata quorum asks for a vote, or beforehand whether it would get one.",
    "BeginQuorumEpoch": "the new leader of the metadata quorum makes itself known.",
    "EndQuorumEpoch": "the leader of the metadata quorum resigns and names successors.",
    "DescribeQuorum": "the metadata quorum: leader, voters, observers and how far each is.",
    "AlterPartition": "a partition's leader asks the controller to change the in-sync replicas.",
    "UpdateFeatures": "raises or lowers the cluster's feature levels.",
    "Envelope": "a client's request that a broker passes on to the controller.",
    "FetchSnapshot": "a slice of a metadata snapshot.",
    "DescribeCluster": "the cluster's id and its brokers or controllers.",
    "DescribeProducers": "the producers a partition remembers.",
    "BrokerRegistration": "a broker introduces itself to the controller.",
    "BrokerHeartbeat": "a broker is alive, has caught up, or wants to stop.",
    "UnregisterBroker": "a broker is gone for good.",
    "DescribeTransactions": "what a coordinator knows about transactional ids.",
    "ListTransactions": "transactions a coordinator looks after, filtered.",
    "AllocateProducerIds": "a broker takes a block of producer ids.",
    "ConsumerGroupHeartbeat": "everything a member of a group of the newer protocol has to say, and its assignment.",
    "ConsumerGroupDescribe": "groups of the newer protocol with their members and assignments.",
    "ControllerRegistration": "a controller introduces itself to the active one.",
    "GetTelemetrySubscriptions": "which metrics a client should send, and how often.",
    "PushTelemetry": "a client's metrics.",
    "AssignReplicasToDirs": "a broker tells the controller in which directory its replicas are.",
    "ListConfigResources": "resources that have settings of their own.",
    "DescribeTopicPartitions": "topics partition by partition, in pages.",
    "ShareGroupHeartbeat": "a member of a share group is alive, and learns its partitions.",
    "ShareGroupDescribe": "share groups with their members.",
    "ShareFetch": "records acquired for a share consumer, with acknowledgements of earlier ones.",
    "ShareAcknowledge": "a share consumer accepts, releases or rejects records.",
    "AddRaftVoter": "one more voter for the metadata quorum.",
    "RemoveRaftVoter": "one voter fewer for the metadata quorum.",
    "UpdateRaftVoter": "a voter's new addresses or protocol versions.",
    "InitializeShareGroupState": "the beginning of a share partition's stored state.",
    "ReadShareGroupState": "a share partition's stored state.",
    "WriteShareGroupState": "changes to a share partition's stored state.",
    "DeleteShareGroupState": "the end of a share partition's stored state.",
    "ReadShareGroupStateSummary": "a share partition's stored state without the single records.",
    "StreamsGroupHeartbeat": "a member of a streams group is alive, with its topology and its tasks.",
    "StreamsGroupDescribe": "streams groups with topology, members and tasks.",
    "DescribeShareGroupOffsets": "where share groups stand.",
    "AlterShareGroupOffsets": "moves where a share group stands.",
    "DeleteShareGroupOffsets": "forgets where a share group stood.",
}

# Kafka's names for types, ours, and the annotation.
TYPES = {
    "BOOLEAN": ("boolean", "bool"),
    "INT8": ("int8", "int"),
    "INT16": ("int16", "int"),
    "INT32": ("int32", "int"),
    "INT64": ("int64", "int"),
    "UINT16": ("uint16", "int"),
    "UNSIGNED_INT32": ("uint32", "int"),
    "FLOAT64": ("float64", "float"),
    "UUID": ("uuid", "bytes"),
    "STRING": ("string", "str"),
    "BYTES": ("bytes_", "bytes"),
    "RECORDS": ("records", "Records"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("KLAMM_KAFKA_JARS", str(ROOT / ".jars" / "kafka"))
    parser.add_argument("--jars", default=default, help="the directory with kafka-clients-*.jar")
    apis = schemas(Path(parser.parse_args().jars))
    written = [write_module(api) for api in apis]
    for stale in set(MESSAGES.glob("*.py")) - set(written) - {MESSAGES / "__init__.py"}:
        stale.unlink()
    for tidy in (["check", "--select", "I", "--fix"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *tidy, "--quiet", str(MESSAGES)], check=True)
    print(f"{len(written)} files in {MESSAGES.relative_to(ROOT)}")


def schemas(jars: Path) -> list[dict[str, Any]]:
    """What the jar says, as JSON."""
    command = ["java", "-cp", f"{jars}/*", str(ROOT / "tools" / "DumpSchemas.java")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)  # type: ignore[no-any-return]


def write_module(api: dict[str, Any]) -> Path:
    """One file an API: the structures, then the request and the response that use them."""
    name = api["name"]
    structures = renamed(name, api["request"], api["response"])
    lines: list[str] = []
    for structure in structures:
        lines += ["", "", *class_lines(structure, api)]
    makers = sorted(set(re.findall(r"\b([a-z_0-9]+)\(", "\n".join(lines))) - {"class"})
    used = sorted({"Records"} & set(re.findall(r"\w+", "\n".join(lines)))) + makers
    if any(line == "@struct" for line in lines):
        used.append("struct")
    head = [
        f'"""{name} (key {api["key"]}): {PURPOSE[name]}',
        "",
        "Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.",
        '"""',
        "",
        f"from klamm.codec.schema import {', '.join(sorted(used, key=lambda n: (n.islower(), n)))}",
    ]
    path = MESSAGES / f"{snake_case(name)}.py"
    path.write_text("\n".join(head + lines) + "\n")
    return path


def renamed(api: str, request: list[Any], response: list[Any]) -> list[Any]:
    """All structures of a file, each after those it uses, under names of their own.

    Where request and response use one name for different things, the response's gets the ending `Response`, as Kafka
    does elsewhere; where they mean the same, there is one class.
    """
    requests = {structure["name"]: structure for structure in request}
    responses = {structure["name"]: structure for structure in response}
    same = {name for name in requests.keys() & responses.keys() if deep(requests, name) == deep(responses, name)}
    names = {name: name + "Response" if name in requests and name not in same else name for name in responses}
    names[f"{api}ResponseData"] = f"{api}Response"
    for structure in response:
        for field in structure["fields"]:
            for version in field["versions"]:
                version["type"] = names.get(version["type"], version["type"])
        structure["name"] = names[structure["name"]]
    request[0]["name"] = f"{api}Request"
    kept = [structure for structure in response if structure["name"] not in same]
    return [*in_order(request, set()), *in_order(kept, same)]


def deep(structures: dict[str, Any], name: str) -> Any:
    """A structure with everything below it, to compare."""
    structure = structures[name]
    return structure, [deep(structures, used) for used in uses(structure)]


def uses(structure: dict[str, Any]) -> list[str]:
    return [field["versions"][0]["type"] for field in structure["fields"] if field["versions"][0]["struct"]]


def in_order(structures: list[Any], elsewhere: set[str]) -> list[Any]:
    known = {structure["name"]: structure for structure in structures}
    ordered: list[Any] = []

    def visit(structure: Any) -> None:
        for name in uses(structure):
            if name not in elsewhere:
                visit(known[name])
        if structure not in ordered:
            ordered.append(structure)

    visit(structures[0])
    return ordered


def class_lines(structure: dict[str, Any], api: dict[str, Any]) -> list[str]:
    name = structure["name"]
    if name in (f"{api['name']}Request", f"{api['name']}Response"):
        flexible = f', flexible="{api["flexible"]}+"' if api["flexible"] >= 0 else ""
        first, last = api["first"], api["last"]
        versions = f"{first}-{last}" if last > first else f"{first}"
        head = f'@message(versions="{versions}"{flexible})'
    else:
        head = "@struct"
    fields = [field_line(field, structure["versions"]) for field in structure["fields"]]
    return [head, f"class {name}:", *(fields or ["    pass"])]


def field_line(field: dict[str, Any], reachable: list[int]) -> str:
    """One line of the table; what would say nothing (all versions, never null, the usual default) is left out."""
    versions = field["versions"]
    first = versions[0]
    options = []
    present = [version["version"] for version in versions]
    if present != reachable:
        options.append(f'versions="{spelled(present, reachable)}"')
    nullable = [version["version"] for version in versions if version["nullable"]]
    kind = first["type"].removeprefix("COMPACT_").removeprefix("NULLABLE_")
    maker, annotation = ("nested", kind) if first["struct"] else TYPES[kind]
    if nullable:
        options.append(f'nullable="{spelled(nullable, reachable)}"')
    if field["default"] is None and nullable:
        options.append("default=None")
    elif field["default"] not in ({}, [], 0, "", False, None):
        options.append(f"default={field['default']!r}")
    tagged = [version["version"] for version in versions if version["tag"] >= 0]
    if tagged:
        options.append(f'tag={max(version["tag"] for version in versions)}, tagged="{spelled(tagged, reachable)}"')
    if first["array"]:
        arguments = [kind if first["struct"] else f"{maker}()", *options]
        maker, annotation = "array", f"list[{annotation}]"
    else:
        arguments = [kind, *options] if first["struct"] else options
    if nullable and annotation != "Records":
        annotation += " | None"
    return f"    {field['name']}: {annotation} = {maker}({', '.join(arguments)})"


def spelled(versions: list[int], reachable: list[int]) -> str:
    """Versions as the tables spell them: open where they go on to the last version there is."""
    assert versions == list(range(versions[0], versions[-1] + 1)), "versions with a gap"
    if versions == reachable:
        return "0+"
    if versions[-1] == reachable[-1]:
        return f"{versions[0]}+"
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else f"{versions[0]}"


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


if __name__ == "__main__":
    main()
