"""Putting a node together from its parts."""

from random import Random

from klamm.broker.broker import Broker
from klamm.config.broker_config import BrokerConfig
from klamm.facts import Tell
from klamm.log.files import Files
from klamm.node.metadata import Metadata
from klamm.node.node import Node


def assembled(config: BrokerConfig, files: Files, random: Random, tell: Tell) -> Node:
    broker = Broker(config, files, random, tell)
    return Node(broker, Metadata(broker, files, random, tell), files, random, tell)
