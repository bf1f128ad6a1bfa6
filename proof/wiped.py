"""Acceptance 8: the disk of a node is lost while it is down. What was committed stays, and nobody votes too early.

A broker comes back empty, catches up and is in sync again; in the end every replica of a partition has lost its disk
once, one after another, and still every acknowledged record is there. A voter that comes back empty is another one than
before, known by its directory id. It may not help to elect anybody until it has caught up with a leader that a majority
confirmed: else what it once helped to commit would be forgotten.
"""

import argparse
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict

from klamm.errors import ErrorCode
from klamm.local.problems import LocalError
from proof import raw
from proof.cluster import MARK, Klamm, ProofError
from proof.failures import NO_VOTERS
from proof.losses import replicas_agree
from proof.store import Store, table
from proof.stream import Stream

TOPIC = "kept"
PER_SECOND = 1_500
YOUNG_SECONDS = 0.6
"""Right after it has registered, a broker is not believed to be dead at once."""
SILENT_SECONDS = 6.0
"""Long enough for several elections, if they could succeed."""

Story = Callable[[Klamm], list[str]]


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "wiped", options.fresh)
    for name in options.only or STORIES:
        story, racks = STORIES[name]
        for _ in range(options.times - len(store.of("story", name=name))):
            with Klamm(3 if racks == 1 else 6, racks, keep=options.keep) as cluster:
                began = time.monotonic()
                problems = _told(story, cluster) + cluster.complaints()
                seconds = round(time.monotonic() - began, 1)
            print(store.append("story", name=name, problems=problems, seconds=seconds), flush=True)
    store.write_summary(summary(store))
    return 1 if any(line["problems"] for line in store.of("story")) else 0


def _told(story: Story, cluster: Klamm) -> list[str]:
    try:
        return story(cluster)
    except (ProofError, LocalError) as problem:
        return [str(problem)]


def every_broker(cluster: Klamm) -> list[str]:
    """Under load, each replica in turn: killed, its disk wiped, started; the next one when all are in sync again."""
    cluster.create(TOPIC, 1, 3, assignment=NO_VOTERS, min_insync_replicas="2")
    stream = Stream(cluster.servers, TOPIC, 1, "wiped", "all", True, PER_SECOND).start()
    try:
        for node_id in NO_VOTERS:
            stream.wait_acknowledged(300)
            cluster.kill([node_id])
            wipe(cluster, node_id)
            stream.wait_acknowledged(300)
            cluster.start([node_id])
            cluster.wait_full_isr(TOPIC)
    finally:
        stream.stop()
    (stored,) = cluster.stored(TOPIC, 1)
    counts = stream.reckoning([[value for value in stored if value != MARK]])
    problems = [] if replicas_agree(cluster, TOPIC) else ["the replicas differ"]
    if counts.lost or counts.doubled or counts.out_of_order or counts.strange or stream.errors:
        problems.append(f"{asdict(counts)}, failed for the client: {dict(stream.errors)}")
    print(asdict(counts), flush=True)
    return problems


def follower_voter(cluster: Klamm) -> list[str]:
    return _voter(cluster, wants_leader=False)


def leading_voter(cluster: Klamm) -> list[str]:
    return _voter(cluster, wants_leader=True)


def _voter(cluster: Klamm, wants_leader: bool) -> list[str]:
    """It comes back as another, observes, and votes again; then it is good enough to lose one of the others."""
    cluster.create(TOPIC, 3, 3, min_insync_replicas="2")
    leader = _leader(cluster)
    node_id = leader if wants_leader else next(each for each in cluster.running if each != leader)
    before = _voters(cluster)
    time.sleep(YOUNG_SECONDS)
    cluster.kill([node_id])
    wipe(cluster, node_id)
    cluster.start([node_id])
    cluster.wait_full_isr(TOPIC)
    cluster.wait_until(
        lambda: sorted(_voters(cluster)) == [0, 1, 2] and _voters(cluster)[node_id] != before[node_id],
        f"{node_id} is no voter again, known by its new directory",
    )
    other = next(each for each in cluster.running if each != node_id)
    cluster.kill([other])
    return _still_decides(cluster, "after the wiped voter is back and another died")


def empty_voter_elects_nobody(cluster: Klamm) -> list[str]:
    """What 0 and 2 committed without 1 is known to 0 alone once 2 has lost its disk: 1 and 2 may not begin alone."""
    cluster.create(TOPIC, 1, 3, min_insync_replicas="1")
    time.sleep(YOUNG_SECONDS)
    cluster.kill([1])
    cluster.wait_until(lambda: _leader(cluster) in (0, 2), "no controller without 1")
    cluster.create("committed-without-1", 1, 1, assignment=[0])
    cluster.kill([0, 2])
    wipe(cluster, 2)
    _start_hopeless(cluster, [1, 2])
    problems = [f"node {leader} leads, and 0 is not there" for leader in _leaders_seen(cluster, SILENT_SECONDS)]
    problems += _elections_won(cluster)
    cluster.start([0])
    cluster.wait_until(lambda: _leader(cluster) >= 0, "no controller with 0")
    cluster.wait_until(lambda: sorted(_voters(cluster)) == [0, 1, 2], "three voters again")
    with cluster.line(0) as line:
        if code := raw.metadata(line, "committed-without-1").error_code:
            problems.append(f"the topic that was committed is gone: {ErrorCode(code).name}")
    cluster.wait_full_isr("committed-without-1")
    return problems + _still_decides(cluster, "in the end")


def power_failure(cluster: Klamm) -> list[str]:
    """All nodes end at once, and one disk does not come back: the others hold everything."""
    cluster.create(TOPIC, 3, 3, min_insync_replicas="2")
    stream = Stream(cluster.servers, TOPIC, 3, "power", "all", True, PER_SECOND).start()
    stream.wait_acknowledged(600)
    time.sleep(YOUNG_SECONDS)
    cluster.kill([0, 1, 2])
    wipe(cluster, 2)
    _start_hopeless(cluster, [0])
    cluster.start([1])
    cluster.start([2])
    cluster.wait_full_isr(TOPIC, 20)
    stream.stop()
    stored = [[value for value in values if value != MARK] for values in cluster.stored(TOPIC, 3)]
    counts = stream.reckoning(stored)
    return [f"{asdict(counts)}, failed for the client: {dict(stream.errors)}"] if counts.lost or stream.errors else []


def all_but_one_voter(cluster: Klamm) -> list[str]:
    """Two of three voters lose their disks: no majority remembers. Nobody may guess what the third one knows."""
    cluster.create(TOPIC, 1, 3, min_insync_replicas="2")
    cluster.kill([0, 1, 2])
    for node_id in (1, 2):
        wipe(cluster, node_id)
    _start_hopeless(cluster, [1, 2])
    problems = [f"node {leader} leads an empty cluster" for leader in _leaders_seen(cluster, SILENT_SECONDS / 2)]
    _start_hopeless(cluster, [0])
    problems += [f"node {leader} leads with empty voters" for leader in _leaders_seen(cluster, SILENT_SECONDS)]
    return problems


STORIES: dict[str, tuple[Story, int]] = {
    "every broker, one after another": (every_broker, 2),
    "a voter that follows": (follower_voter, 1),
    "the voter that leads": (leading_voter, 1),
    "an empty voter elects nobody": (empty_voter_elects_nobody, 1),
    "all nodes killed, one disk lost": (power_failure, 1),
    "two of three voters empty": (all_but_one_voter, 1),
}


def wipe(cluster: Klamm, node_id: int) -> None:
    shutil.rmtree(cluster.directory / f"node-{node_id}")


def _start_hopeless(cluster: Klamm, node_ids: list[int]) -> None:
    """They run, and nobody expects that they serve."""
    try:
        cluster.local.start(node_ids, timeout_seconds=2.0)
    except LocalError as problem:
        print(f"as expected: {problem}", flush=True)


def _leader(cluster: Klamm) -> int:
    with cluster.line() as line:
        return int(raw.quorum(line).leader_id)


def _voters(cluster: Klamm) -> dict[int, bytes]:
    """Node and directory ids, as the leader tells them: it alone knows."""
    with cluster.line(_leader(cluster)) as line:
        return {each.replica_id: bytes(each.replica_directory_id) for each in raw.quorum(line).current_voters}


def _leaders_seen(cluster: Klamm, seconds: float) -> set[int]:
    """Who was said to lead, by anybody who runs, at any moment of this time."""
    seen, deadline = set(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        for node_id in cluster.running:
            try:
                with cluster.line(node_id, timeout_seconds=1.0) as line:
                    seen.add(int(raw.quorum(line).leader_id))
            except (OSError, LookupError):
                continue
        time.sleep(0.02)
    return seen - {-1}


def _elections_won(cluster: Klamm) -> list[str]:
    """In the log of a wiped voter, since it was started with nothing."""
    since = cluster.log(2).rpartition("takes connections")[2]
    return [line for line in since.splitlines() if "node 2 leads the metadata quorum" in line]


def _still_decides(cluster: Klamm, when: str) -> list[str]:
    """A topic can be created, and what was there is there."""
    problems: list[str] = []

    def creates() -> bool:
        with cluster.line() as line:
            return raw.create_topic(line, "new", 1, 2) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    cluster.wait_until(creates, f"no topic can be created {when}", 20)
    with cluster.line() as line:
        if code := raw.metadata(line, TOPIC).error_code:
            problems.append(f"{TOPIC} is gone {when}: {ErrorCode(code).name}")
    return problems


def summary(store: Store) -> str:
    rows = []
    for name in STORIES:
        lines = store.of("story", name=name)
        problems = [problem for line in lines for problem in line["problems"]]
        if lines:
            rows.append([name, len(lines), len(problems) or "none", "<br>".join(problems)])
    return f"""# A disk is lost

{table(["story", "times", "problems", ""], rows)}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=3, help="of each story")
    parser.add_argument("--only", nargs="+", default=[], choices=list(STORIES), metavar="STORY")
