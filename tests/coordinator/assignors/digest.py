"""Prints a digest of many assignments: a process under another PYTHONHASHSEED must print the same."""

from hashlib import sha256
from random import Random

from klamm.coordinator.groups.assignors import ASSIGNORS
from tests.coordinator.assignors.drawing import drawn_members, drawn_topics


def main() -> None:
    found = sha256()
    for seed in range(200):
        random = Random(seed)
        topics = drawn_topics(random, most=12, racks=seed % 2 == 0)
        members = drawn_members(random, topics, equal=seed % 3 == 0, most=15, racks=seed % 2 == 0)
        for assignor in ASSIGNORS.values():
            for member_id, mine in assignor.assign(members, topics).items():
                found.update(repr((member_id, [(topic, sorted(mine[topic])) for topic in mine])).encode())
    print(found.hexdigest())


if __name__ == "__main__":
    main()
