"""Who this data directory belongs to: `meta.properties`, written once, checked at every start.

A directory of another node, or of another cluster, is not opened: its logs would be taken for ours. Nor is one that was
never a node's and holds what a node would clear away.
"""

from collections.abc import Iterable
from errno import EISDIR
from hashlib import sha256
from random import Random
from typing import NamedTuple

from klamm.broker.directories import is_of_a_partition
from klamm.controller.names import CLUSTER_METADATA
from klamm.ids import BrokerId, Uuid, drawn_uuid, uuid_from_text, uuid_text
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, Files

METADATA_DIRECTORY = f"{CLUSTER_METADATA}-0"
NAMED = 3


class WrongDirectory(Exception):  # noqa: N818
    """The data directory is somebody else's."""


class Identity(NamedTuple):
    cluster_id: str
    directory_id: Uuid
    is_new: bool


def common_cluster_id(voters: Iterable[tuple[int, str, int]]) -> str:
    """The same for all nodes that were given the same quorum, so that a new cluster agrees on one without a word."""
    text = ",".join(f"{number}@{host}:{port}" for number, host, port in sorted(voters))
    return uuid_text(Uuid(sha256(text.encode()).digest()[:16]))


def identity_of(
    files: Files, node_id: BrokerId, random: Random, cluster_id: str | None = None, otherwise: str | None = None
) -> Identity:
    """What the directory says it is. A new directory becomes the given cluster's, the one it is `otherwise`, or a new
    one's. Only what somebody gave is held against an old one: the quorum's addresses may have changed since."""
    if not files.exists(checkpoint.META_PROPERTIES):
        _refuse_somebodys(files)
        cluster_id = cluster_id or otherwise or uuid_text(drawn_uuid(random))
        identity = Identity(cluster_id, drawn_uuid(random), is_new=True)
        text = checkpoint.meta_properties_text(identity.cluster_id, node_id, identity.directory_id)
        files.write_whole(checkpoint.META_PROPERTIES, text)
        return identity
    found = read_identity(files)
    if found is None:
        raise WrongDirectory(
            f"{checkpoint.META_PROPERTIES} is damaged; restore it (it names cluster.id, node.id and directory.id), let "
            "`klamm storage repair` write it again (--id N --cluster-id ID), or start with an empty directory"
        )
    if found["node.id"] != str(node_id):
        raise WrongDirectory(
            f"it belongs to node {found['node.id']}, and this is node {node_id}; "
            f"choose another with --dir, or start as --id {found['node.id']}"
        )
    if cluster_id is not None and found["cluster.id"] != cluster_id:
        raise WrongDirectory(
            f"it belongs to cluster {found['cluster.id']}, and this is cluster {cluster_id}; choose another with --dir"
        )
    return Identity(found["cluster.id"], uuid_from_text(found["directory.id"]), is_new=False)


def read_identity(files: Files) -> dict[str, str] | None:
    """What meta.properties says; None if it is missing or damaged."""
    if not files.exists(checkpoint.META_PROPERTIES):
        return None
    found = checkpoint.read_meta_properties(checkpoint.read_small(files, checkpoint.META_PROPERTIES)) or {}
    try:
        uuid_from_text(found["directory.id"])
        uuid_from_text(found["cluster.id"])
        return found if found["node.id"].isdecimal() else None
    except (KeyError, ValueError):
        return None


def has_data(files: Files) -> bool:
    """Whether a node has written here: it knows metadata."""
    return METADATA_DIRECTORY in files.listing("") and bool(files.listing(METADATA_DIRECTORY))


def _refuse_somebodys(files: Files) -> None:
    """Before anything is written. Of a node that never was here no partition can be: what is called like one could be
    taken for that of a topic which is gone, and removed, or be in the way of another."""
    if has_data(files):
        raise WrongDirectory(
            f"{checkpoint.META_PROPERTIES} is missing, and there is the data of a node: restore it (it names "
            "cluster.id, node.id and directory.id), or let `klamm storage repair` write it again (--id, --cluster-id)"
        )
    found = sorted(filter(is_of_a_partition, files.listing("")))
    if not found:
        return
    listed = ", ".join(found[:NAMED]) + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")
    raise WrongDirectory(
        f"it is no node's (it has no {checkpoint.META_PROPERTIES}), and holds {listed}, called like partitions: those "
        "of topics that it does not have a node removes; choose an empty directory with --dir"
    )


def taken_clean_shutdown(files: Files) -> int:
    """The broker epoch that the last clean shutdown noted, or -1. The note is gone afterwards: it speaks of one end."""
    if not files.exists(checkpoint.CLEAN_SHUTDOWN):
        return -1
    try:
        epoch = checkpoint.read_clean_shutdown(checkpoint.read_small(files, checkpoint.CLEAN_SHUTDOWN))
    except DiskFailed as error:
        if error.errno == EISDIR:
            return -1
        epoch = None
    files.remove(checkpoint.CLEAN_SHUTDOWN)
    return -1 if epoch is None else epoch
