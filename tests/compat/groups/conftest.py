"""A broker on which groups come to rest soon; the Java consumer as one more program a member can be."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.compat.java_tools import JavaTools
from tests.groups.conftest import SETTINGS
from tests.groups.gathering import PARTITIONS
from tests.groups.member import PYTHON, Command
from tests.harness.fixtures import StartNode
from tests.harness.kafka_node import jar_directory
from tests.harness.node import Node
from tests.harness.topics import create_topic

JVM = ["java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


@pytest.fixture(scope="session")
def commands(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Command]:
    """Members by all libraries. The Java one is compiled once: thirteen of them are to start."""
    classes = tmp_path_factory.mktemp("classes")
    source = Path(__file__).with_name("GroupMember.java")
    jars = f"{jar_directory()}/*"
    subprocess.run(["javac", "-cp", jars, "-d", str(classes), str(source)], check=True)
    return {**PYTHON, "java": (*JVM, "-cp", f"{classes}:{jars}", "GroupMember")}


@pytest.fixture(scope="module")
def node(start_module_node: StartNode) -> Node:
    return start_module_node(SETTINGS)


@pytest.fixture
def ten(node: Node, topic: str) -> str:
    """The test's topic, which has ten partitions."""
    create_topic(node.bootstrap, topic, PARTITIONS)
    return topic
