"""The nodes of a run: each a process of its own, at its place, with its directory and its log.

What is started is written down beside the directories, by number and birth, before anything else happens: whoever
finds the leftovers of a run that was itself killed can end its nodes, and nobody else's.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from klamm.chaos.places import Places
from klamm.local.processes import Process, State, process_of, signal_to, started, state_of, wait_ended
from klamm.local.topology import PlannedNode, planned

FILE = "processes.json"
CANNOT_START = "klamm broker: cannot start"
KILL_SECONDS = 10.0
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"


class Nodes:
    def __init__(self, directory: Path, places: Places, settings: Mapping[str, str]) -> None:
        self.directory = directory
        self.planned = planned(len(places.addresses), racks=1)
        self.ended_by_themselves: list[str] = []
        """Nodes that nobody had asked to end, and the codes they ended with."""
        self._places = places
        self._settings = settings
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._processes: dict[int, Process] = {}
        self._is_asked: set[int] = set()

    @property
    def numbers(self) -> range:
        return range(len(self.planned))

    def directory_of(self, number: int) -> Path:
        return self.directory / f"node-{number}"

    def log_of(self, number: int) -> Path:
        return self.directory / f"node-{number}.log"

    def state(self, number: int) -> State:
        child = self._children.get(number)
        if child is None or child.poll() is not None:
            return "dead"
        return state_of(self._processes[number])

    def states(self) -> dict[int, State]:
        return {number: self.state(number) for number in self.numbers}

    # What is done to them.

    def start(self, numbers: Iterable[int]) -> None:
        """Those that do not run. Nobody waits until they are ready."""
        for number in numbers:
            if self.state(number) != "dead":
                continue
            self._note_end(number)
            command = self._places.command_in(number, self._command(self.planned[number]))
            child = started(command, self.log_of(number))
            self._children[number] = child
            self._processes[number] = process_of(child.pid)
            self._is_asked.discard(number)
            self._write_down()

    def kill(self, numbers: Iterable[int]) -> None:
        """All of them at once, and they are gone when this returns."""
        alive = [number for number in numbers if self.state(number) != "dead"]
        for number in alive:
            self._is_asked.add(number)
            signal_to(self._processes[number], signal.SIGKILL)
        for number in alive:
            self._children[number].wait(KILL_SECONDS)

    def pause(self, number: int) -> None:
        signal_to(self._processes[number], signal.SIGSTOP)

    def resume(self, number: int) -> None:
        if self.state(number) != "dead":
            signal_to(self._processes[number], signal.SIGCONT)

    def ask_to_stop(self, number: int) -> None:
        self._is_asked.add(number)
        signal_to(self._processes[number], signal.SIGTERM)

    # What is found out.

    def note_ends(self) -> None:
        for number in self.numbers:
            if self.state(number) == "dead":
                self._note_end(number)

    def complaints(self) -> list[str]:
        """What the nodes said that nobody should have to read: errors and stack traces."""
        return [f"node {number}: {line}" for number in self.numbers for line in self._errors_of(number)]

    # Helpers.

    def _errors_of(self, number: int) -> list[str]:
        if not self.log_of(number).exists():
            return []
        lines = self.log_of(number).read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if " ERROR " in line or "Traceback" in line or line.startswith(CANNOT_START)]

    def _note_end(self, number: int) -> None:
        child = self._children.get(number)
        if child is not None and number not in self._is_asked:
            self._is_asked.add(number)
            said = self._errors_of(number)[-1:] or ["nothing of it"]
            self.ended_by_themselves.append(
                f"node {number} ended by itself, with code {child.returncode}, and said: {said[0]}"
            )

    def _command(self, node: PlannedNode) -> list[str]:
        # -P: what lies in the directory we are called from is no module of ours.
        command = [sys.executable, "-P", "-m", "klamm", "broker", "--id", str(node.node_id)]
        command += ["--listen", str(self._places.addresses[node.node_id])]
        # A directory on the node's disk: what else lies there (ballast) is not the node's.
        command += ["--dir", str(self.directory_of(node.node_id) / "data")]
        quorum = [f"{each.node_id}@{self._places.addresses[each.node_id]}" for each in self.planned if each.is_voter]
        command += ["--roles", ",".join(node.roles), "--quorum", ",".join(quorum), "--cluster-id", CLUSTER_ID]
        for name, value in sorted(self._settings.items()):
            command += ["--set", f"{name}={value}"]
        return command

    def _write_down(self) -> None:
        document = {str(number): process._asdict() for number, process in self._processes.items()}
        temporary = self.directory / f"{FILE}.tmp"
        temporary.write_text(json.dumps(document), encoding="utf-8")
        temporary.replace(self.directory / FILE)


def kill_written_down(directory: Path) -> None:
    """The nodes of a run that ended without ending them."""
    try:
        document = json.loads((directory / FILE).read_text(encoding="utf-8"))
        processes = [Process(int(each["pid"]), str(each["birth"])) for each in document.values()]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for process in processes:
        if signal_to(process, signal.SIGKILL):
            wait_ended(process, KILL_SECONDS)
