"""Klamm's broker as a process: `klamm broker`, ready when it has printed its one line."""

import sys

from tests.harness.node import Node


class KlammNode(Node):
    def command(self) -> list[str]:
        own_address = f"127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "klamm", "broker", "--id", "0", "--listen", own_address]
        command += ["--dir", str(self.dir)]
        if self.advertised != own_address:
            command += ["--advertise", self.advertised]
        for name, value in sorted(self.settings.items()):
            command += ["--set", f"{name}={value}"]
        return command

    def wait_ready(self, deadline: float) -> None:
        self.wait_first_line(deadline)
        self.wait_accepting(deadline)
