"""A network of one's own, in which nobody has taken port 9092 yet: a namespace with nothing in it but loopback.

Root makes one, and so does everybody else where the system lets users have namespaces. Where neither goes, the ports of
this machine have to do, and they have to be free.
"""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 1
PORTS = [*range(9092, 9100), *range(9404, 9412), *range(19092, 19100)]
"""Those that pages use."""


def enter() -> bool:
    """Whether this process, and all that it starts, is now in a network of its own. Tried in a child first: where a
    system gives users namespaces and then no right to anything in them, whoever has entered one cannot go back."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if _enter() else 1)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and _enter()


def _enter() -> bool:
    system = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if system.unshare(NEW_NETWORK) != 0:
        if system.unshare(NEW_USER | NEW_NETWORK) != 0:
            return False
        # As the same user as outside, so that files belong to whom they would.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _loopback_up()
    return True


def taken_ports() -> list[int]:
    taken = []
    for port in PORTS:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                taken.append(port)
    return taken


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack("16xH14x", fcntl.ioctl(any_socket, GET_FLAGS, asked))
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", flags | IS_UP))
