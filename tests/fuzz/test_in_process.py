"""Mutated frames straight into `Node.step`: quicker than over sockets, every answer read back, and the disk opened
again afterwards."""

from collections import Counter
from random import Random

import pytest

from klamm.node.facts import HandlerFailed
from klamm.runtime.files import RealFiles
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.fetch import FetchResponse
from klamm.wire.messages.metadata import MetadataRequest
from tests.fuzz.corpus import TOPICS, UNREGISTER_BROKER, Corpus
from tests.fuzz.mutations import Mutations
from tests.fuzz.solo import Solo, asked, check_response

FRAMES = 8_000
TIDY_EVERY = 500


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mutated_frames_are_answered_or_closed_and_the_disk_stays_sound(real_files: RealFiles, seed: int) -> None:
    solo = Solo(real_files, seed)
    corpus = Corpus(Random(seed))
    mutations = Mutations(Random(seed), corpus)
    outcomes: Counter[str] = Counter()
    for number in range(FRAMES):
        if number % TIDY_EVERY == 0:
            _tidy(solo, corpus)
        body = mutations.next().body
        response = solo.ask(body)
        outcomes["closed" if response is None else "answered" if response else "nothing"] += 1
        try:
            if response:
                answer = check_response(body, response)
                if isinstance(answer, FetchResponse) and answer.session_id:
                    corpus.sessions.append(answer.session_id)
            _check_facts(solo)
        except Exception as error:
            raise AssertionError(f"seed {seed}, frame {number}: {body.hex()}") from error
    # The mix is worth something only if a good part of it gets through.
    assert outcomes["answered"] > FRAMES // 4 and outcomes["closed"] > FRAMES // 10, outcomes
    known = _topics(solo)
    real_files.close()
    again = Solo(real_files, seed + 100)
    assert _topics(again) == known, "found again after a crash"
    again.stop()
    clean = Solo(real_files, seed + 200)
    assert _topics(clean) == known, "found again after a clean shutdown"
    _check_facts(clean)


def _tidy(solo: Solo, corpus: Corpus) -> None:
    strange = sorted(set(_topics(solo)) - set(TOPICS))
    asked(solo, DeleteTopicsRequest(topic_names=strange, timeout_ms=1000), 5)
    new = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPICS]
    asked(solo, CreateTopicsRequest(topics=new, timeout_ms=1000), 5)
    topics = asked(solo, MetadataRequest(topics=None), 12).topics
    corpus.topic_ids = [bytes(16), *(topic.topic_id for topic in topics)]
    corpus.renew()


def _topics(solo: Solo) -> dict[str, int]:
    topics = asked(solo, MetadataRequest(topics=None), 12).topics
    return {topic.name: len(topic.partitions) for topic in topics}


def _check_facts(solo: Solo) -> None:
    for fact in solo.facts:
        assert not isinstance(fact, HandlerFailed), str(fact)
    solo.facts.clear()


def test_no_mutation_asks_for_what_the_only_broker_would_obey_and_be_gone() -> None:
    mutations = Mutations(Random(21), Corpus(Random(20)))
    keys = Counter(int.from_bytes(mutations.next().body[:2], "big") for _ in range(10_000))
    assert len(keys) > 30 and keys[UNREGISTER_BROKER] == 0


def test_a_seed_draws_the_same_frames_whatever_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> list[bytes]:
        mutations = Mutations(Random(21), Corpus(Random(20)))
        return [mutations.next().body for _ in range(2_000)]

    first = drawn()
    monkeypatch.setattr("time.time_ns", lambda: 1)
    assert drawn() == first
