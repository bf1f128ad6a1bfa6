"""One broker as a process: take the data directory, open it, listen, say so in one line, and stop cleanly when told.

Nothing listens before the logs are open, and nobody is told before it listens.
"""

import fcntl
import gc
import signal
import socket
from pathlib import Path
from random import SystemRandom
from typing import IO

from klamm.config import BrokerConfig, Listener
from klamm.log.files import DiskFailed
from klamm.log.recovery import LogDamaged
from klamm.metadata.image import Endpoint
from klamm.node.assembly import assembled
from klamm.node.identity import WrongDirectory
from klamm.quorum.election import UnreadableElection
from klamm.quorum.raft import UnreadableMetadata
from klamm.runtime.driver import Driver
from klamm.runtime.facts import ListensWide, SettingWarning, Stopped
from klamm.runtime.files import RealFiles
from klamm.runtime.loop import NEVER, Loop
from klamm.runtime.observe import log_lines
from klamm.runtime.server import Limits


class CannotStart(Exception):  # noqa: N818
    """Why, and what to do about it, in a sentence for the person who called."""


def run_broker(config: BrokerConfig) -> None:
    """Run until SIGTERM or SIGINT."""
    tell = log_lines(config.node_id)
    for warning in config.warnings:
        tell(SettingWarning(warning))
    directory = Path(config.log_dir)
    lock = taken_directory(directory)
    loop = Loop()
    files = RealFiles(directory)
    driver = Driver(assembled(config, files, SystemRandom(), tell), files, loop, limits_of(config, files), tell)
    listener = bound(driver, config)
    open_node(driver, config, listener, directory)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.on_signal(number, loop.stop)
    if not listener.is_loopback:
        tell(ListensWide(listener.host or "every interface", listener.port))
    # What is there now stays: a full collection that walks over it again would only cost milliseconds.
    gc.collect()
    gc.freeze()
    driver.server.take_connections()
    print(f"klamm broker {config.node_id} takes connections on {listener.host or '*'}:{listener.port}", flush=True)
    loop.run()
    clean = driver.stop()
    tell(Stopped(clean))
    lock.close()


def limits_of(config: BrokerConfig, files: RealFiles) -> Limits:
    idle_ms = config.integer("connections.max.idle.ms")
    return Limits(
        max_frame_bytes=config.integer("socket.request.max.bytes"),
        max_connections=min(config.integer("max.connections"), files.descriptors_for_others()),
        max_connections_per_ip=config.integer("max.connections.per.ip"),
        max_idle_ms=idle_ms if idle_ms >= 0 else NEVER,
    )


def bound(driver: Driver, config: BrokerConfig) -> Listener:
    """The address is ours from here on, though nobody is answered yet. The listener with its real port."""
    listener = config.listeners[0]
    try:
        port = driver.server.bind(listener.host, listener.port)
    except OSError as error:
        raise CannotStart(
            f"cannot listen on {listener.host}:{listener.port}: {error.strerror}; choose another address with --listen"
        ) from error
    return listener._replace(port=port)


def open_node(driver: Driver, config: BrokerConfig, listener: Listener, directory: Path) -> None:
    advertised = config.advertised_listeners[0]
    host = advertised.host or listener.host or socket.gethostname()
    endpoint = Endpoint(advertised.name, host, advertised.port or listener.port)
    try:
        driver.start(endpoint)
    except (DiskFailed, LogDamaged, UnreadableElection, UnreadableMetadata, WrongDirectory) as error:
        raise CannotStart(f"the data directory {directory} cannot be opened: {error}") from error


def taken_directory(directory: Path) -> IO[str]:
    """Make the directory ours until the process ends, or say why not."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("a+")
    except OSError as error:
        raise CannotStart(f"the data directory {directory} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise CannotStart(
            f"the data directory {directory} is in use by another process; stop it, or choose another with --dir"
        ) from None
    return lock
