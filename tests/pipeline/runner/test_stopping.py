"""One signal asks, also after Spark has taken SIGINT for itself; the second ends the process."""

import os
import signal
import subprocess
import sys

from klamm.pipeline.stopping import StopSignals

TWICE = """
import os, signal
from klamm.pipeline.stopping import StopSignals
with StopSignals(print, lambda: print("the view goes")) as signals:
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.were_seen
    os.kill(os.getpid(), signal.SIGINT)
    print("still here")
"""


def test_the_first_asks() -> None:
    before = signal.getsignal(signal.SIGINT)
    said: list[str] = []
    with StopSignals(said.append) as signals:
        assert not signals.were_seen
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signals.listen()
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.were_seen and said == ["stopping after this batch ... (once more: at once)"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ends_it() -> None:
    ended = subprocess.run([sys.executable, "-u", "-c", TWICE], capture_output=True, text=True, check=False)
    assert ended.returncode == 130 and "still here" not in ended.stdout
    assert ended.stdout.splitlines()[1:] == ["the view goes", "ended at once; the next run repeats the batch"]
