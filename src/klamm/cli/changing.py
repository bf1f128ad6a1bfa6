"""The cluster of somebody who wants to change something: refused at once where too few voters run to decide it."""

import argparse

from klamm.cli.group_asking import Cluster, Refused, cluster_of
from klamm.cli.no_majority import undecided
from klamm.cli.options import bootstrap_of


def changing(options: argparse.Namespace) -> Cluster:
    refuse_if_undecided(options)
    return cluster_of(options)


def refuse_if_undecided(options: argparse.Namespace) -> None:
    words = undecided(options.dir, bootstrap_of(options))
    if words is not None:
        raise Refused(words)
