"""Putting a node together from its parts."""

from random import Random

from klamm.broker.broker import Broker
from klamm.config.broker_config import BrokerConfig
from klamm.facts import Tell
from klamm.log.files import Files
from klamm.node.node import Node


def assembled(
    config: BrokerConfig,
    files: Files,
    random: Random,
    tell: Tell,
    cluster_id: str | None = None,
    boot_id: str | None = None,
) -> Node:
    """`cluster_id`: of the cluster it belongs to, if somebody says so; else those of the same quorum agree on one.
    `boot_id` is another one whenever the machine was started."""
    return Node(Broker(config, files, random, tell, boot_id), files, random, cluster_id, tell)
