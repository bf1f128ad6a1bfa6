"""Whatever members do and whatever is lost: one owner for each partition of a generation, one leader, one protocol.

Up to six consumers join, die, return, leave and lose answers; the log refuses, the coordinator fails over. After every
step each ticket is answered once or waits. In the end, when everybody does as told, the group is stable, every
partition has its owner, and another coordinator would know the same from the log.
"""

from random import Random

import pytest

from tests.coordinator.classic.bench import Bench
from tests.coordinator.classic.clients import PARTITIONS, Client, Promises

STEPS = 250
CALM_ROUNDS = 40
"""Half a second each: longer than any session and any rebalance, so that nobody is missed after that."""


class History:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bench = Bench(seed, initial_rebalance_delay_ms=self.random.choice([0, 1_000, 3_000]))
        self.promises = Promises()
        self.committed: dict[tuple[str, int], int] = {}
        count = self.random.randint(1, 6)
        static = self.random.randint(0, count)
        self.clients = [self.client(f"static{number}" if number < static else None) for number in range(count)]
        self.trouble = self.random.random() * 0.4

    def client(self, instance_id: str | None) -> Client:
        return Client(self.bench, self.promises, self.random, instance_id)

    def step(self, number: int) -> None:
        random, bench = self.random, self.bench
        client = random.choice(self.clients)
        if random.random() > self.trouble:
            bench.append_fails = random.random() < 0.05
            if not client.is_dead:
                client.act()
                self.committed |= client.commit(number) if random.random() < 0.2 else {}
            bench.append_fails = False
            bench.pass_ms(random.choice([0, 0, 10, 500]))
        else:
            self.mishap(client)
        bench.check_parked()

    def mishap(self, client: Client) -> None:
        random, bench = self.random, self.bench
        match random.randrange(9):
            case 0:
                client.lose_answer()
            case 1:
                client.change_its_mind()
            case 2:
                client.restart()
            case 3:
                client.leave()
            case 4:
                client.is_dead = True
            case 5 | 6:
                self.clients.append(self.client(client.instance_id))
                if client.instance_id is None or len(self.clients) > 6:
                    self.clients.remove(client)
            case 7:
                bench.fail_over()
                self.check_offsets()
            case 8:
                bench.append_fails = random.random() < 0.3
                bench.pass_ms(random.choice([1_000, 7_000, 20_000]))
                bench.append_fails = False

    def check_offsets(self) -> None:
        assert {place: found.offset for place, found in self.bench.offsets().items()} == self.committed

    def comes_to_rest(self) -> None:
        calm = 0
        while calm < CALM_ROUNDS:
            if all(client.is_dead for client in self.clients):
                # Also the last ones may yet hear that they are fenced.
                self.clients.append(self.client(None))
            for client in self.clients:
                if not client.is_dead:
                    client.act()
            self.bench.pass_ms(500)
            alive = [client for client in self.clients if not client.is_dead]
            calm = calm + 1 if alive and all(client.is_in for client in alive) else 0
            assert self.bench.passed_ms < 10_000_000, f"it does not come to rest: {self.bench.shard._groups}"
        described = self.bench.described()
        assert described.state == "Stable"
        assert {each.member_id for each in described.members} == {client.member_id for client in alive}
        assert sorted(partition for each in described.members for partition in each.assignment) == list(PARTITIONS)
        assert self.bench.described(self.bench.replayed()) == described
        self.check_offsets()
        self.bench.fail_over()
        self.check_offsets()


@pytest.mark.parametrize("seed", range(120))
def test_any_history(seed: int) -> None:
    history = History(seed)
    for number in range(STEPS):
        history.step(number)
    history.comes_to_rest()
