"""The story with node states beside it: readable, and nothing the run depends on."""

from klamm.sim.many import outcome_of
from klamm.sim.plan import drawn_plan
from klamm.sim.report import TIME_WIDTH, WIDTH

SEED = 4


def test_the_report_changes_nothing() -> None:
    plan = drawn_plan(SEED).lasting(2_000.0)
    told, untold = outcome_of(plan, keeps_all=True), outcome_of(plan)
    assert told.digest == untold.digest and told.events == untold.events


def test_a_column_for_each_node() -> None:
    plan = drawn_plan(SEED).lasting(2_000.0)
    story = outcome_of(plan, keeps_all=True).story
    texts = TIME_WIDTH + plan.brokers * (WIDTH + 1)
    assert texts < 80, "the other half of the screen is for what happened"
    assert story[0].splitlines()[-1].split() == ["seconds", *(f"node-{number}" for number in range(plan.brokers))]
    starts = next(line for line in story if line.endswith("node-1 starts"))
    assert starts[texts:] == "node-1 starts" and starts[:texts].split()[:1] == ["0.0000"]
    mended = next(line for line in story if "everything is mended" in line)
    assert len(mended[:texts].replace("@", " ").split()) > plan.brokers
