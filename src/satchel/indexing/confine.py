"""Sandbox for this process: no network, no writing of files, limited memory.

On Linux the kernel enforces the sandbox (seccomp), also for libraries written in C and Rust and for programs started
from this process. Elsewhere an audit hook refuses the calls of Python code only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h: signal to this process when the parent thread dies
_PR_SET_SECCOMP: Final = 22  # linux/prctl.h: install a seccomp filter
_PR_SET_NO_NEW_PRIVS: Final = 38  # linux/prctl.h: required to install a filter without privileges
_SECCOMP_MODE_FILTER: Final = 2  # linux/seccomp.h: the filter is a BPF program

_AF_INET: Final = 2  # sys/socket.h: IPv4
_SOCK_STREAM: Final = 1  # sys/socket.h: TCP

_BPF_LOAD: Final = 0x20  # linux/bpf_common.h: BPF_LD + BPF_W + BPF_ABS
_BPF_JUMP_EQUAL: Final = 0x15  # linux/bpf_common.h: BPF_JMP + BPF_JEQ + BPF_K
_BPF_JUMP_NOT_LESS: Final = 0x35  # linux/bpf_common.h: BPF_JMP + BPF_JGE + BPF_K
_BPF_JUMP_ANY_BIT: Final = 0x45  # linux/bpf_common.h: BPF_JMP + BPF_JSET + BPF_K
_BPF_RETURN: Final = 0x06  # linux/bpf_common.h: BPF_RET + BPF_K
_SECCOMP_ALLOW: Final = 0x7FFF0000  # linux/seccomp.h: SECCOMP_RET_ALLOW
_SECCOMP_FAIL: Final = 0x00050000  # linux/seccomp.h: SECCOMP_RET_ERRNO; the low bits are the error number
_NUMBER_OFFSET_BYTES: Final = 0  # in struct seccomp_data: the number of the system call
_ARCHITECTURE_OFFSET_BYTES: Final = 4  # in struct seccomp_data
_ARGUMENTS_OFFSET_BYTES: Final = 16  # in struct seccomp_data: six arguments of eight bytes
_X32_CALL_BIT: Final = 0x40000000  # __X32_SYSCALL_BIT: x32 calls would get past a filter by number

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def confine(memory_bytes: int) -> bool:
    """Give up the network, writing files, and memory beyond a limit, for good; True if the kernel enforces the ban."""
    import resource

    # Address space is more than memory: libraries reserve what they never touch. The parent watches what is touched.
    for limit, value in (
        (resource.RLIMIT_AS, memory_bytes * 2 + (1 << 30)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    _filter_calls()
    sys.addaudithook(_refuse)
    return _is_network_refused()


def die_with_parent() -> None:
    """On Linux the kernel kills this process with the parent thread; elsewhere the end of the pipe ends the process."""
    if sys.platform == "linux":
        parent = os.getppid()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def dying_with_us() -> Callable[[], None] | None:
    """`preexec_fn` for a subprocess to be killed by the kernel with this process; None on systems except Linux."""
    if sys.platform != "linux":
        return None
    # All lookups happen here: code between fork and exec must do as little as possible.
    prctl, parent, end, signal_number = ctypes.CDLL(None).prctl, os.getpid(), os._exit, int(signal.SIGKILL)

    def first() -> None:
        prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:
            end(0)

    return first


def _is_network_refused() -> bool:
    """True if the kernel refuses to open a socket; tested by trying, because a filter may be ignored."""
    if sys.platform != "linux":
        return False
    socket_handle = int(ctypes.CDLL(None).socket(_AF_INET, _SOCK_STREAM, 0))
    if socket_handle >= 0:
        os.close(socket_handle)
    return socket_handle < 0


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        raise PermissionError(errno.EACCES, f"network access is blocked in this process ({event})")
    # An integer is the descriptor of an open pipe.
    if event == "open" and not isinstance(arguments[0], int) and arguments[2] & _WRITES:
        raise PermissionError(errno.EACCES, "writing files is blocked in this process")


def _filter_calls() -> None:
    if sys.platform != "linux":
        return
    table = tomllib.loads(resources.files("satchel.indexing").joinpath("system_calls.toml").read_text("utf-8"))
    calls = table.get(platform.machine())
    if calls is None:
        return
    code = _program(calls)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = Program(len(code) // 8, ctypes.addressof(buffer))
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)


def _program(calls: Mapping[str, Any]) -> bytes:
    """The seccomp filter (BPF): refused calls fail with EACCES, all remaining calls pass."""

    def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("<HBBI", code, if_true, if_false, value)

    refuse = step(_BPF_RETURN, _SECCOMP_FAIL | errno.EACCES)
    out = [
        step(_BPF_LOAD, _ARCHITECTURE_OFFSET_BYTES),
        step(_BPF_JUMP_EQUAL, calls["architecture"], 1, 0),
        refuse,
        step(_BPF_LOAD, _NUMBER_OFFSET_BYTES),
        step(_BPF_JUMP_NOT_LESS, _X32_CALL_BIT, 0, 1),
        refuse,
    ]
    for number in calls["refused"]:
        out += [step(_BPF_JUMP_EQUAL, number, 0, 1), refuse]
    for number, flags in calls["opening"]:
        out += [
            step(_BPF_JUMP_EQUAL, number, 0, 4),
            step(_BPF_LOAD, _ARGUMENTS_OFFSET_BYTES + 8 * flags),
            step(_BPF_JUMP_ANY_BIT, _WRITES, 0, 1),
            refuse,
            step(_BPF_RETURN, _SECCOMP_ALLOW),
        ]
    return b"".join([*out, step(_BPF_RETURN, _SECCOMP_ALLOW)])
