"""Programs of the system that do the work: ip, tc, nft, mount. Each is bounded in time, and says why it failed."""

import subprocess

SECONDS = 20


def run(*command: str, text: str | None = None) -> str:
    """What it said. CalledProcessError, with what it said of the reason, if it failed."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr or done.stdout)
    return done.stdout


def attempt(*command: str) -> bool:
    """For tidying up, where what is gone already is as good as removed."""
    return subprocess.run(command, capture_output=True, timeout=SECONDS, check=False).returncode == 0
