"""Acceptance 5: how long until a new cluster has acknowledged a write, and what idle nodes weigh.

`up`: from the start of the command `klamm up --detach` for three nodes to the first acks=all write, in a topic with
three replicas that is created in between. `embedded`: from `klamm.Cluster(brokers=3)` to the same, in a fresh
interpreter; what the imports took is noted beside it. `idle`: memory of six node processes together, a few seconds
after they were started and left alone: resident, and the proportional share, which counts what they share once.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.process import memory

from klamm.errors import ErrorCode
from klamm.local.cluster import LocalCluster
from proof import raw
from proof.cluster import Klamm, ProofError
from proof.raw import Line
from proof.store import ROOT, Store, percentile, table

TOPIC = "first"
IDLE_SECONDS = 5.0
REACH = {"up": 1.5, "embedded": 0.5, "idle": 400.0}


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "start", options.fresh)
    for what, measure in MEASURED.items():
        for _ in range(options.times - len(store.of(what))):
            print(store.append(what, **measure()), flush=True)
    store.write_summary(summary(store))
    return 0 if all(reached(store, what) for what in MEASURED) else 1


def up() -> dict[str, float]:
    directory = Path(tempfile.mkdtemp(prefix="klamm-proof-"))
    command = [sys.executable, "-m", "klamm", "up", "--brokers", "3", "--port", "0", "--detach", "--json"]
    began = time.monotonic()
    try:
        told = subprocess.run([*command, "--dir", str(directory)], capture_output=True, text=True, cwd=ROOT, check=True)
        is_up = time.monotonic()
        servers = str(json.loads(told.stdout)["bootstrap_servers"])
        first_write(int(servers.split(",")[0].rpartition(":")[2]))
        return {"seconds": round(time.monotonic() - began, 3), "up_seconds": round(is_up - began, 3)}
    finally:
        cluster = LocalCluster(directory)
        cluster.kill(node.node_id for node in cluster.record().nodes)
        shutil.rmtree(directory, ignore_errors=True)


def embedded() -> dict[str, float]:
    told = subprocess.run(
        [sys.executable, "-m", "proof.embedded_start"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return {name: round(value, 3) for name, value in json.loads(told.stdout).items()}


def idle() -> dict[str, float]:
    with Klamm(brokers=6) as cluster:
        time.sleep(IDLE_SECONDS)
        weights = [memory(node.process.pid) for node in cluster.record.nodes if node.process is not None]
    return {
        "resident_mib": round(sum(each.resident_mib for each in weights), 1),
        "proportional_mib": round(sum(each.proportional_mib for each in weights), 1),
    }


MEASURED = {"up": up, "embedded": embedded, "idle": idle}
FIGURE = {"up": "seconds", "embedded": "seconds", "idle": "resident_mib"}


def first_write(port: int) -> None:
    """Create a topic with three replicas and write to its leader until that is acknowledged."""
    with Line(port) as line:
        code = raw.create_topic(line, TOPIC, 1, 3)
        if code:
            raise ProofError(f"{TOPIC} could not be created: {ErrorCode(code).name}")
        brokers, leader = raw.leader_and_ports(line, TOPIC)
    with Line(brokers[leader]) as line:
        deadline = time.monotonic() + 30
        while raw.produce(line, TOPIC, 0, b"first") != ErrorCode.NONE:
            if time.monotonic() > deadline:
                raise ProofError("no write was acknowledged")
            time.sleep(0.001)


def reached(store: Store, what: str) -> bool:
    return all(line[FIGURE[what]] <= REACH[what] for line in store.of(what))


def summary(store: Store) -> str:
    rows = []
    for what, figures in (
        ("up", ["seconds", "up_seconds"]),
        ("embedded", ["seconds", "open_seconds", "import_seconds"]),
        ("idle", ["resident_mib", "proportional_mib"]),
    ):
        for figure in figures:
            values = [line[figure] for line in store.of(what)]
            if values:
                goal = f"{REACH[what]:g}" if figure == FIGURE[what] else ""
                rows.append([what, figure, len(values), min(values), percentile(values, 0.5), max(values), goal])
    return f"""# Start

{__doc__.partition(chr(10) * 2)[2].strip()}

{table(["what", "figure", "times", "least", "p50", "most", "to reach"], rows)}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=10)
