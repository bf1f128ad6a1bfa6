"""Putting a node together from its parts."""

from random import Random

from klamm.broker.broker import Broker
from klamm.config.broker_config import BrokerConfig
from klamm.facts import Tell
from klamm.log.files import Files
from klamm.node.identity import common_cluster_id
from klamm.node.node import Node


def assembled(config: BrokerConfig, files: Files, random: Random, tell: Tell, cluster_id: str | None = None) -> Node:
    """`cluster_id`: of the cluster it belongs to, if somebody says so; else those of the same quorum agree on one."""
    if cluster_id is None and len(config.voters) > 1:
        cluster_id = common_cluster_id(config.voters)
    return Node(Broker(config, files, random, tell), files, random, cluster_id, tell)
