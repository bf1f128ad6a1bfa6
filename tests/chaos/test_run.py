"""A short run with real processes: killed and paused, on loopback, where nobody needs to be root."""

from klamm.chaos.abilities import Abilities
from klamm.chaos.faults import Fault, Whom
from klamm.chaos.plan import drawn_plan
from klamm.chaos.run import run_once
from klamm.cli.chaos import run_line

SECONDS = 8.0
FAULTS = (
    Fault(1.0, "kill", 1.5, Whom("leader", 0), "all", 0),
    Fault(3.5, "pause", 3.5, Whom("controller", 0), "all", 0),
    Fault(7.2, "everybody", 0.3, Whom("broker", 0), "all", 0),
)


def test_a_cluster_that_is_killed_and_paused_keeps_its_promises() -> None:
    on_loopback = Abilities(has_network=False, has_disks=False, possible=frozenset(), reasons=())
    plan = drawn_plan(1, SECONDS, 3, on_loopback.possible).with_faults(FAULTS)
    shown: list[str] = []
    outcome = run_once(plan, on_loopback, keep=False, show=shown.append)
    assert outcome.broken == [], "\n".join(outcome.story)
    assert outcome.faults == {"kill": 1, "pause": 1, "everybody": 1}
    assert outcome.sent == outcome.acknowledged > 1_000
    assert outcome.read >= 4 * outcome.acknowledged, "two readers from the beginning, one late, one afterwards"
    assert not outcome.gave_up and outcome.complaints == []
    assert outcome.story == shown and outcome.directory is None
    assert "lost 0, doubled 0" in run_line(outcome) and "every promise was kept" in run_line(outcome)
