"""The address a server listens at: this machine only, unless there are tokens for everybody who may ask."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import Final

from satchel.errors import InvalidOption

_BACKLOG: Final = 2_048
_DEFAULT_PORT: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A socket that listens, and the names by which it is reached."""

    socket: socket.socket
    host: str
    port: int

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        return f"http://{_in_url(self._reached_at)}:{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """What a Host header may say."""
        names = {_in_url(self._reached_at)}
        if ipaddress.ip_address(self._reached_at).is_loopback:
            names.add("localhost")
        found = {f"{name}:{self.port}" for name in names}
        return frozenset(found | names if self.port == _DEFAULT_PORT else found)

    @property
    def origins(self) -> frozenset[str]:
        """What an Origin header may say."""
        return frozenset(f"http://{host}" for host in self.hosts)

    @property
    def _reached_at(self) -> str:
        address = ipaddress.ip_address(self.host)
        if not address.is_unspecified:
            return self.host
        return "127.0.0.1" if address.version == 4 else "::1"


def bind(host: str = "127.0.0.1", port: int = 0, *, keys_are_given: bool = False) -> Listener:
    """Listen there; port 0 is any that is free. Without a file of keys only on this machine's own addresses."""
    if not 0 <= port <= 65_535:
        raise InvalidOption("port", port, "must be from 0 to 65535")
    family, address = _resolved(host)
    if not keys_are_given and not ipaddress.ip_address(address).is_loopback:
        told = (
            "is not this machine's own address (127.0.0.1, ::1, localhost). To let others ask, give them tokens: --keys"
        )
        raise InvalidOption("host", host, told)
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _unbindable(host, port, error) from None
    return Listener(socket=listening, host=address, port=listening.getsockname()[1])


def _resolved(host: str) -> tuple[socket.AddressFamily, str]:
    """The address that a name stands for: an IPv4 one if there is one. All of them must be of the same kind."""
    if not host or not host.isprintable():
        raise InvalidOption("host", host, "is no name and no address")
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no name"
        raise InvalidOption("host", host, f"is not known on this machine ({reason})") from None
    addresses = sorted({(family, str(where[0])) for family, _, _, _, where in found})
    if len({ipaddress.ip_address(one.partition("%")[0]).is_loopback for _, one in addresses}) != 1:
        raise InvalidOption("host", host, "stands for several addresses; name the one to listen at")
    return addresses[0]


def _unbindable(host: str, port: int, error: OSError) -> InvalidOption:
    if error.errno == errno.EADDRINUSE:
        told = (
            "is taken, perhaps by another Satchel; stop that one, or choose another with --port (0: any that is free)"
        )
        return InvalidOption("port", port, told)
    if error.errno == errno.EACCES:
        return InvalidOption("port", port, "may not be used by this user; choose one above 1023 with --port")
    return InvalidOption("host", host, f"cannot be listened at ({error.strerror})")


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
