"""One node as a process: take the data directory, open it, listen, say so in one line, and stop cleanly when told.

Other nodes are answered as soon as the directory is open. Clients are answered, and everybody is told, when the cluster
counts on this broker.
"""

import contextlib
import gc
import shlex
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from errno import EADDRINUSE
from pathlib import Path
from random import SystemRandom

from klamm.config import BrokerConfig, Listener
from klamm.facts import Tell
from klamm.log.files import DiskFailed
from klamm.log.recovery import LogDamaged
from klamm.metadata.image import Endpoint
from klamm.node.assembly import assembled
from klamm.node.identity import WrongDirectory
from klamm.quorum.election import UnreadableElection
from klamm.quorum.raft import UnreadableMetadata
from klamm.runtime.alertness import Alertness
from klamm.runtime.dialer import Dialer, MakeDialer
from klamm.runtime.driver import Driver
from klamm.runtime.facts import ListensWide, SettingWarning, Stopped
from klamm.runtime.files import RealFiles
from klamm.runtime.loop import NEVER, Loop
from klamm.runtime.monitoring import Monitoring
from klamm.runtime.observe import FactCounts, log_lines
from klamm.runtime.problems import AddressTaken, CannotStart
from klamm.runtime.server import Limits
from klamm.runtime.taking import TakenDirectory


def run_broker(config: BrokerConfig, cluster_id: str | None = None, make_dialer: MakeDialer = Dialer) -> bool:
    """Run until SIGTERM or SIGINT, or until the node cannot go on. Whether it ended because it was told to."""
    tell = log_lines(config.node_id)
    for warning in config.warnings:
        tell(SettingWarning(warning))
    loop = Loop(Alertness())
    running = Running(config, loop, tell, cluster_id, make_dialer=make_dialer)
    listener = running.listener
    if not listener.is_loopback:
        tell(ListensWide(listener.host or "every interface", listener.port))
    kind = "broker" if config.is_broker else "controller"
    where, data = f"{listener.host or '*'}:{listener.port}", Path(config.log_dir).absolute()
    line = f"klamm {kind} {config.node_id} takes connections on {where}, data in {data}"
    running.start(on_serve=lambda: print(line, flush=True), on_end=lambda clean: loop.stop())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.on_signal(number, lambda: running.stop(lambda clean: loop.stop()))
    keep_what_stays()
    loop.run()
    return running.was_told


def keep_what_stays() -> None:
    """A full collection walks over every object there is, and with ten thousand partitions nobody is served for a tenth
    of a second. So what one has found alive is left out of the next ones. (Hardly anything here is cyclic: a topic that
    is deleted goes without any collection.)"""

    def found(phase: str, about: dict[str, int]) -> None:
        if phase == "stop" and about["generation"] == OLDEST:
            gc.freeze()

    gc.callbacks.append(found)
    gc.collect()


OLDEST = 2


class Running:
    """A node on a loop: its directory is taken and its address bound; `start` opens it and lets others in."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: Loop,
        tell: Tell,
        cluster_id: str | None = None,
        open_files: int | None = None,
        make_dialer: MakeDialer = Dialer,
    ) -> None:
        self._config = config
        facts = FactCounts(tell)
        self._tell = tell = facts.tell
        self._directory = TakenDirectory(Path(config.log_dir))
        self._files = RealFiles(self._directory.path, open_files)
        node = assembled(config, self._files, SystemRandom(), tell, cluster_id, boot_id())
        self.driver = Driver(node, self._files, loop, limits_of(config, self._files), tell, make_dialer)
        self.driver.counts = node.cluster.dispatch.counts
        node.broker.on_configured = lambda config: self.driver.server.limit(limits_of(config, self._files))
        self._monitoring = Monitoring(self.driver, facts) if config.metrics_place is not None else None
        self._on_end: Callable[[bool], None] = lambda clean: None
        self._is_closing = False
        self._is_clean = False
        self.was_told = False
        """Whether somebody asked it to stop."""
        try:
            self.listener = bound(self.driver, config)
        except CannotStart:
            self._directory.give_back()
            raise

    def start(self, on_serve: Callable[[], None], on_end: Callable[[bool], None]) -> None:
        """In the loop's thread, or before the loop runs. `on_end(clean)` is called if the node ends by itself: its
        metadata log has failed, or another process has taken its place."""
        self._on_end = on_end
        driver = self.driver
        driver.on_serve = on_serve
        driver.on_stop = self._stop
        try:
            open_node(driver, self._config, self.listener, self._directory.path)
        except CannotStart:
            self._directory.give_back()
            raise
        driver.server.take_connections()
        if self._monitoring is not None and self._config.metrics_place is not None:
            self._monitoring.listen(*self._config.metrics_place, self._tell)

    def stop(self, then: Callable[[bool], None]) -> None:
        """Hand over, then close everything; `then(clean)` when that is done. A second call does not wait any longer."""
        if self.driver.is_down:
            then(self._is_clean)
        elif self.was_told:
            self._stop()
        else:
            self.was_told = True
            self._on_end = then
            self.driver.begin_to_stop()

    def abandon(self) -> None:
        """As if the process were killed: nothing more is sent or written."""
        self._stop_monitoring()
        self.driver.abandon()
        self._directory.let_go()

    def _stop(self) -> None:
        # Not from within the step that found out.
        self.driver.loop.call_soon(self._close)

    def _close(self) -> None:
        # Asked twice, it is in the loop's queue twice, and stopping hears what is in there.
        if self.driver.is_down or self._is_closing:
            return
        self._stop_monitoring()
        self._is_closing = True
        self._is_clean = self.driver.stop()
        self._tell(Stopped(self._is_clean))
        self._directory.let_go()
        self._on_end(self._is_clean)

    def _stop_monitoring(self) -> None:
        if self._monitoring is not None:
            self._monitoring.close()
            self._monitoring = None


def boot_id() -> str | None:
    """Another one whenever the machine was started; None where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def limits_of(config: BrokerConfig, files: RealFiles) -> Limits:
    idle_ms = config.integer("connections.max.idle.ms")
    queued_bytes = config.integer("queued.max.request.bytes")
    limits = Limits(
        max_frame_bytes=config.integer("socket.request.max.bytes"),
        max_connections=min(config.integer("max.connections"), files.descriptors.for_others()),
        max_connections_per_ip=config.integer("max.connections.per.ip"),
        connections_of=_exceptions(config.text("max.connections.per.ip.overrides") or ""),
        max_idle_ms=idle_ms if idle_ms >= 0 else NEVER,
    )
    return limits if queued_bytes <= 0 else replace(limits, unfinished_bytes=queued_bytes)


def _exceptions(overrides: str) -> dict[str, int]:
    """`host:count,host:count`, by every address that the host has."""
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in overrides.split(","))):
        host, _, count = entry.rpartition(":")
        with contextlib.suppress(OSError):
            found |= {str(each[4][0]): int(count) for each in socket.getaddrinfo(host.strip("[]"), None)}
    return found


def bound(driver: Driver, config: BrokerConfig) -> Listener:
    """The addresses are ours from here on, though nobody is answered yet. The first listener with its real port."""
    bound_listeners = []
    for listener in (*config.listeners, *config.controller_listeners):
        try:
            port = driver.server.bind(listener.host, listener.port)
        except OSError as error:
            where = f"{listener.host}:{listener.port}"
            text = f"cannot listen on {where}: {error.strerror}; choose another address with --listen"
            raise (AddressTaken(text, listener.port) if error.errno == EADDRINUSE else CannotStart(text)) from error
        bound_listeners.append(listener._replace(port=port))
    return bound_listeners[0]


def open_node(driver: Driver, config: BrokerConfig, listener: Listener, directory: Path) -> None:
    advertised = config.advertised_listeners[0] if config.advertised_listeners else listener
    host = advertised.host or listener.host or socket.gethostname()
    endpoint = Endpoint(advertised.name, host, advertised.port or listener.port)
    try:
        driver.start(endpoint)
    except (LogDamaged, UnreadableElection, UnreadableMetadata) as error:
        quoted = shlex.quote(str(directory))
        raise CannotStart(
            f"the data directory {directory} cannot be opened: {error}. Nothing was changed. `klamm storage check "
            f"{quoted}` shows what is damaged, `klamm storage repair {quoted}` says what can be done and does it"
        ) from error
    except (DiskFailed, WrongDirectory) as error:
        raise CannotStart(f"the data directory {directory} cannot be opened: {error}") from error
