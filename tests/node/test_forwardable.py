"""What a broker passes on to the controller is what the controller takes out of an Envelope: the same list, twice."""

from pathlib import Path

from klamm import handlers
from klamm.node.dispatch import FORWARDABLE


def test_whoever_may_say_elsewhere_is_forwardable_and_nobody_else() -> None:
    folder = Path(handlers.__file__).parent
    saying = {path.stem for path in folder.glob("*.py") if "return Elsewhere()" in path.read_text()}
    assert saying == FORWARDABLE
