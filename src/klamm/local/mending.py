"""What stands in the way of a cluster's start, found before anything is touched, and the command that mends it.

A directory that holds something else; data of another version or cluster; nodes that run already, all or some; ports
that somebody listens on. And a fresh start, which deletes what an earlier cluster left, and nothing else.
"""

import re
import shlex
import shutil
from pathlib import Path

from klamm.local.agreeing import Wish, differences, properties_of
from klamm.local.listeners import cluster_on, listener_on, node_in
from klamm.local.problems import LocalError, PortsTaken
from klamm.local.processes import state_of
from klamm.local.record import FILE, ClusterRecord, is_in_use, read_record, remove_record
from klamm.local.topology import listed
from klamm.log.checkpoint import META_PROPERTIES, read_meta_properties
from klamm.runtime.taking import LOCK

DATA_VERSION = "1"
NODE, LOG = re.compile("node-[0-9]+"), re.compile(r"node-[0-9]+\.log")
"""What a cluster makes in its directory, one a node. What is called otherwise is somebody else's."""
OF_A_NODE = frozenset({META_PROPERTIES, "__cluster_metadata-0"})
"""One of them is in every data directory of a node that has ever begun."""
ELSEWHERE = "`klamm up --dir OTHER` starts one elsewhere"
BESIDE = "`klamm up --dir OTHER --port 0` starts another cluster beside it"


def check_kind(directory: Path) -> None:
    """It is no file, and not the data directory of a single broker, Klamm's or Kafka's."""
    if directory.exists() and not directory.is_dir():
        raise LocalError(f"{directory} is a file, not a directory for a cluster; {ELSEWHERE}")
    if (directory / META_PROPERTIES).exists():
        raise LocalError(
            f"{directory} is the data directory of a single broker (it has a {META_PROPERTIES}), not of a cluster; "
            f"`klamm broker --dir {_quoted(directory)}` runs that broker, {ELSEWHERE}"
        )


def nothing_here(directory: Path, usual_port: int) -> str:
    """There is no cluster in the directory; maybe one runs from another, or it is the directory above or below."""
    makes = f"`klamm up --dir {_quoted(directory)}` makes one"
    if (held := _held_by(directory)) is not None:
        return held
    if near := _near(directory):
        there = f"there is one in {near[0]}: add --dir {_quoted(near[0])}"
        return f"there is no cluster in {directory}, but {there}; or {makes}"
    other = cluster_on(usual_port)
    if other is None:
        return f"there is no cluster in {directory}; {makes}"
    return f"there is no cluster in {directory}, but one runs from {other}: add --dir {_quoted(other)}; or {makes}"


def check_none_near(directory: Path) -> None:
    """Whoever finds no cluster in the directory may mean one that is right here, and not whatever answers elsewhere."""
    if _held_by(directory) is not None or _near(directory):
        raise LocalError(nothing_here(directory, 0))


def _near(directory: Path) -> list[Path]:
    return [path.parent for path in (directory.parent / FILE, *sorted(directory.glob(f"*/{FILE}"))) if path.is_file()]


def check_nothing_lies_there(directory: Path) -> None:
    """Nodes of a cluster that is not recorded: a new one would take their data for its own, or lose it."""
    if (held := _held_by(directory)) is not None:
        raise LocalError(held)
    found = _node_directories(directory)
    if found:
        raise LocalError(
            f"{directory} holds data ({', '.join(path.name for path in found)}) and no cluster.json to say of what "
            f"cluster; `klamm up --fresh --dir {_quoted(directory)}` deletes it and starts empty, {ELSEWHERE}"
        )


def check_nobody_runs(directory: Path, known: ClusterRecord, wish: Wish) -> None:
    states = {node.node_id: "dead" if node.process is None else state_of(node.process) for node in known.nodes}
    running = [node_id for node_id, state in states.items() if state != "dead"]
    if not running:
        return
    at, dead = f"--dir {_quoted(directory)}", [node_id for node_id in states if node_id not in running]
    if not dead:
        raise LocalError(
            f"the cluster in {directory} runs already, at {known.bootstrap_servers}{_unlike(known, wish)}; "
            f"`klamm status --watch {at}` shows it, `klamm down {at}` stops it"
        )
    alive = f"{listed(running)} {'runs' if len(running) == 1 else 'run'}"
    ended = f"{listed(dead)} {'is' if len(dead) == 1 else 'are'} dead"
    raise LocalError(
        f"the cluster in {directory} runs already, but not all of it: {alive}, {ended}; "
        f"`klamm node start {' '.join(map(str, dead))} {at}` starts what is missing, `klamm down {at}` stops the rest"
    )


def _unlike(known: ClusterRecord, wish: Wish) -> str:
    """What of a wish a cluster that runs does not fulfil."""
    unlike = ""
    if others := differences(known, wish):
        unlike = f", and is another than was asked for ({'; '.join(others)}; {BESIDE})"
    if wish.settings is not None and wish.settings != known.settings:
        unlike += ", and takes --set when it is started again"
    return unlike


def check_data(directory: Path, known: ClusterRecord) -> None:
    """What the nodes find is theirs. A directory that is not there is made again, empty."""
    for node in known.nodes:
        file = directory / f"node-{node.node_id}" / META_PROPERTIES
        if not file.is_file():
            continue
        found = read_meta_properties(file.read_bytes()) or {}
        expected = {"version": DATA_VERSION, "cluster.id": known.cluster_id, "node.id": str(node.node_id)}
        wrong = [f"{name} {found.get(name, 'missing')}, not {value}" for name, value in expected.items()
                 if found.get(name) != value]  # fmt: skip
        if wrong:
            raise LocalError(
                f"{file.parent} is not the data of node {node.node_id} of this cluster: {'; '.join(wrong)}. Put the "
                f"right one back; or `klamm up --fresh --dir {_quoted(directory)}` deletes all of it and starts empty"
            )


def check_may_be_deleted(directory: Path) -> None:
    """All that a fresh start would delete are nodes' directories that no process uses, their logs and the record."""
    for path in (*_called(directory, NODE), *_called(directory, LOG), directory / FILE):
        if path.is_symlink():
            raise LocalError(f"{path} leads elsewhere, and is not deleted; remove the link yourself, or {ELSEWHERE}")
        if path.exists() and path.is_dir() != bool(NODE.fullmatch(path.name)):
            raise LocalError(f"{path} is nothing that a cluster makes, and is not deleted; {ELSEWHERE}")
    for path in _node_directories(directory):
        if not _is_of_a_node(path):
            raise LocalError(f"{path} does not look like the data of a node, and is not deleted; {ELSEWHERE}")
        if is_in_use(path):
            held = None if _is_known_to_run(directory) else _held_by(directory)
            raise LocalError(
                held or f"{path} is in use: the cluster runs; `klamm down --dir {_quoted(directory)}` stops it first"
            )


def check_settings(directory: Path, record: ClusterRecord) -> None:
    """Every node would take what it is going to be told."""
    # Only who sets or deletes something pays for it.
    from klamm.config import BrokerConfig, ConfigError

    for node in record.nodes:
        try:
            BrokerConfig.from_properties((), properties_of(record, node, directory))
        except ConfigError as problem:
            wrong = "; ".join(problem.problems)
            raise LocalError(f"the nodes could not start, and nothing was done: {wrong}") from None


def delete_data(directory: Path) -> None:
    for path in _node_directories(directory):
        shutil.rmtree(path)
    for log in _called(directory, LOG):
        log.unlink()
    remove_record(directory)


def explained(problem: PortsTaken, host: str, directory: Path, may_move: bool) -> PortsTaken:
    """Who has the ports, and what to do about it. Where others of the cluster run, it keeps its ports."""
    holders = {port: listener_on(port) for port in problem.ports}
    clusters = sorted({each.cluster_directory for each in holders.values() if each and each.cluster_directory})
    named = ", ".join(
        f"{host}:{port}{f' by {holder}' if holder and not clusters else ''}" for port, holder in holders.items()
    )
    if clusters:
        others = ", ".join(map(str, clusters))
        stop = " and ".join(f"`klamm down --dir {_quoted(each)}`" for each in clusters)
        what = f"{named} {'is' if len(holders) == 1 else 'are'} taken by the cluster in {others}; {stop} stops it"
    else:
        what = f"taken already: {named}; end that process"
    if not may_move:
        return PortsTaken(problem.ports, f"{what}, or {BESIDE}")
    free = f"`klamm up --port 0 --dir {_quoted(directory)}` takes any that are free"
    return PortsTaken(problem.ports, f"{what}, or choose other ports: {free}")


def _is_known_to_run(directory: Path) -> bool:
    """Its record, if there is one that can be read, names a process that lives."""
    try:
        known = read_record(directory)
    except LocalError:
        return False
    return known is not None and any(node.process and state_of(node.process) != "dead" for node in known.nodes)


def _held_by(directory: Path) -> str | None:
    """Of nodes that run and that no record names, so that no other command finds them: who they are, and what ends
    them. None where no node's directory is in use."""
    in_use = [path for path in _node_directories(directory) if is_in_use(path)]
    if not in_use:
        return None
    holders = {path.name: node_in(path, LOCK) for path in in_use}
    pids = [str(each.pid) for each in holders.values() if each is not None]
    named = ", ".join(f"{name} by process {each.pid}" if each else name for name, each in holders.items())
    stop = f"`kill {' '.join(pids)}` stops them" if pids else "end the processes that have them open"
    return f"{directory} holds data in use ({named}), and no {FILE} that names who uses it; {stop}"


def _node_directories(directory: Path) -> list[Path]:
    return [path for path in _called(directory, NODE) if path.is_dir()]


def _called(directory: Path, name: re.Pattern[str]) -> list[Path]:
    return sorted(path for path in directory.glob("node-*") if name.fullmatch(path.name))


def _is_of_a_node(path: Path) -> bool:
    """Or empty, but for the lock that a node takes before it writes anything."""
    inside = {each.name: each for each in path.iterdir()}
    lock = inside.pop(LOCK, None)
    return bool(OF_A_NODE & set(inside)) or (not inside and (lock is None or lock.stat().st_size == 0))


def _quoted(directory: Path) -> str:
    return shlex.quote(str(directory))
