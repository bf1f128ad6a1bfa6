"""One run: a broker, an attack, a witness, and what is watched meanwhile.

The promise is acceptance 4 of the first issue: however many mutated frames come, the process stays up, its memory under
256 MiB, and a second client's requests are answered throughout. A handler that fails (the broker calls that its own bug
and closes the connection) breaks it too.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.metadata import MetadataRequest
from tests.fuzz import witness
from tests.fuzz.attack import Attack
from tests.fuzz.corpus import TOPICS, Corpus
from tests.fuzz.mutations import Mutated, Mutations
from tests.fuzz.suspects import as_hex, culprit_among
from tests.harness.klamm_node import KlammNode
from tests.hostile.target import Target, wait_for_leader

LANES = 16
CEILING_MIB = 256.0
BOUND_SECONDS = 15.0
"""How long the witness may wait for one answer. Ten thousand partitions, which is what one request may ask for, take a
broker some seconds to make, and it does one thing at a time."""

TIDY_EVERY = 5_000
LOOK_SECONDS = 0.2
FAILED_HANDLER = re.compile(r"could not handle .* from 127\.0\.0\.1:(\d+)")


@dataclass
class Result:
    seed: int
    frames: int
    seconds: float
    frames_a_second: int
    answered: int
    closed: int
    waited: int
    most_partitions: int
    peak_mib: float
    witness: dict[str, object]
    failure: str | None = None
    culprit: str | None = None

    def line(self) -> str:
        return json.dumps(self.__dict__)


class Failed(Exception):  # noqa: N818
    def __init__(self, what: str, culprit: Mutated | None = None) -> None:
        super().__init__(what)
        self.culprit = culprit


class Campaign:
    def __init__(self, seed: int, home: Path, report: Callable[[str], None] = lambda line: None) -> None:
        self._seed = seed
        self._report = report
        self._node = KlammNode(home)
        self._corpus = Corpus(Random(seed), now_ms=time.time_ns() // 1_000_000)
        self._most_partitions = 0

    def run(self, frames: int, seconds: float) -> Result:
        self._node.start()
        failure: Failed | None = None
        peak_mib = 0.0
        try:
            target = Target(self._node)
            self._client = target.connect(patience=60)
            self._tidy()
            self._create([witness.TOPIC])
            observer = _start_witness(self._node.port)
            attack = Attack(self._node.port, Mutations(Random(self._seed + 1), self._corpus), LANES)
            began = time.monotonic()
            try:
                self._fight(attack, target, observer, frames, began + seconds)
            except Failed as error:
                failure = error
            except (OSError, AssertionError) as error:
                failure = self._why(attack, target, error)
            took = time.monotonic() - began
            seen = _stop_witness(observer)
            if failure is None and "disturbed" in seen:
                failure = Failed(f"the witness was disturbed: {seen['disturbed']}")
            if target.is_up():
                peak_mib = target.peak_mib()
                if failure is None and peak_mib >= CEILING_MIB:
                    failure = Failed(f"the broker held {peak_mib:.0f} MiB")
            attack.close()
        finally:
            log = self._node.log
            self._node.discard()
        if failure is None and ("Traceback" in log or "bug in Klamm" in log):
            failure = self._failed_handler(attack, log)
        counts = attack.counts
        return Result(
            seed=self._seed,
            frames=counts.handled,
            seconds=round(took, 1),
            frames_a_second=round(counts.handled / took),
            answered=counts.answered,
            closed=counts.closed,
            waited=counts.waited,
            most_partitions=self._most_partitions,
            peak_mib=round(peak_mib, 1),
            witness=seen,
            failure=None if failure is None else str(failure),
            culprit=None if failure is None or failure.culprit is None else as_hex(failure.culprit),
        )

    def _fight(
        self, attack: Attack, target: Target, observer: "subprocess.Popen[str]", frames: int, until: float
    ) -> None:
        counts = attack.counts
        next_tidy, next_look, next_report = TIDY_EVERY, 0.0, 0.0
        began = time.monotonic()
        while counts.handled < frames:
            attack.turn()
            now = time.monotonic()
            if now > until:
                return
            if counts.handled >= next_tidy:
                next_tidy = counts.handled + TIDY_EVERY
                self._tidy()
            if now >= next_look:
                next_look = now + LOOK_SECONDS
                self._look(attack, target, observer)
            if now >= next_report:
                next_report = now + 2.0
                pace = counts.handled / max(0.1, now - began)
                self._report(
                    f"{counts.handled:>9,} of {frames:,} frames  {pace:>7,.0f}/s  {counts.closed:,} closed"
                    f"  {target.resident_mib():.0f} MiB"
                )

    def _look(self, attack: Attack, target: Target, observer: "subprocess.Popen[str]") -> None:
        if not target.is_up():
            raise ConnectionError("the broker is gone")
        if observer.poll() is not None:
            raise Failed("the witness gave up", culprit_among(attack.suspects()))
        resident = target.resident_mib()
        if resident >= CEILING_MIB:
            raise Failed(f"the broker holds {resident:.0f} MiB", culprit_among(attack.suspects()))
        log = self._node.log
        if "bug in Klamm" in log:
            raise self._failed_handler(attack, log)

    def _failed_handler(self, attack: Attack, log: str) -> Failed:
        found = FAILED_HANDLER.search(log)
        culprit = attack.culprits.get(int(found[1])) if found else None
        start = found.start() if found else log.index("Traceback")
        return Failed(f"the broker found a bug in itself:\n{_without_paths(log[start : start + 4000])}", culprit)

    def _why(self, attack: Attack, target: Target, error: Exception) -> Failed:
        """Something broke off. If the broker is down, one of the frames that were on their way has done it."""
        if target.is_up():
            return Failed(f"the attack was cut off: {error!r}")
        return Failed(
            f"the broker is down:\n{_without_paths(self._node.log[-4000:])}", culprit_among(attack.suspects())
        )

    # Keeping house.

    def _tidy(self) -> None:
        """Delete what mutations have created, and see that what is always there is there."""
        client = self._client
        topics = client.ask(MetadataRequest(topics=None), 12).topics
        self._most_partitions = max(self._most_partitions, sum(len(topic.partitions) for topic in topics))
        kept = {*TOPICS, witness.TOPIC}
        strange = [topic.name for topic in topics if topic.name not in kept or len(topic.partitions) > 20]
        if strange:
            client.ask(DeleteTopicsRequest(topic_names=strange, timeout_ms=30_000), 5)
        known = {topic.name for topic in topics} - set(strange)
        missing = [name for name in TOPICS if name not in known]
        if missing:
            self._create(missing)
        topics = client.ask(MetadataRequest(topics=None), 12).topics
        self._corpus.topic_ids = [bytes(16), *(topic.topic_id for topic in topics if topic.name in TOPICS)]
        self._corpus.renew()

    def _create(self, names: list[str]) -> None:
        new = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
        if names == [witness.TOPIC]:
            new[0].num_partitions = 1
        self._client.ask(CreateTopicsRequest(topics=new, timeout_ms=30_000), 4)
        for name in names:
            wait_for_leader(self._client, name)


def _without_paths(text: str) -> str:
    """Tracebacks name files; where they lie on this machine is nobody's business."""
    return re.sub(r'(?<=File ")[^"]*/(?=[^/"]+/[^/"]+\.py")', "", text)


def _start_witness(port: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.witness", str(port), str(BOUND_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def _stop_witness(process: "subprocess.Popen[str]") -> dict[str, object]:
    said, _ = process.communicate(timeout=2 * BOUND_SECONDS)
    seen: dict[str, object] = json.loads(said.splitlines()[-1]) if said.strip() else {"disturbed": "no word of it"}
    return seen
