"""Walls around a process: namespaces, limits and a filter of system calls, put up by the process itself.

The process starts for each batch anew, so that nothing but the standard library is imported here.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
import time
from pathlib import Path

MEMORY = 2 << 30  # bytes of address space
DISK = 1 << 30  # bytes in the own folder
OPEN_FILES = 256
PROCESSES = 256  # of this user, where no filter forbids new ones
CORES = 2
FOLDER = "/grader"  # the own one, as the isolated process sees it
DEVICES = ("null", "zero", "full", "random", "urandom")
LIBRARIES = (  # of the system: what shared objects and time zones are found by; no secrets lie there
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/share/zoneinfo",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)
RESOLVER = (  # what names and certificates of servers are looked up in
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/usr/share/ca-certificates",
)

_NEW_USER, _NEW_MOUNTS, _NEW_NETWORK, _NEW_IPC = 0x10000000, 0x00020000, 0x40000000, 0x08000000
_BIND, _RECURSIVE, _PRIVATE, _DETACH = 0x1000, 0x4000, 1 << 18, 2
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8  # the same bits for mount and mount_setattr
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_DEATH_SIGNAL, _SECCOMP, _NO_NEW_PRIVILEGES, _FILTER = 1, 22, 38, 2
_CAPABILITIES_3 = 0x20080522

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS: dict[str, tuple[int, int]] = {  # of system calls on the two; -1: it has none of that name
    "clone": (56, 220),
    "fork": (57, -1),
    "vfork": (58, -1),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "prlimit64": (302, 261),
    "unshare": (272, 97),
    "setns": (308, 268),
    "socket": (41, 198),
}
_PIDFD_SIGNAL, _IO_URING, _CLONE3, _THREAD = 424, 425, 435, 0x10000
_EPERM, _EAGAIN, _ENOSYS, _EACCES = 1, 11, 38, 13
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def isolate(*, network: bool) -> None:
    """Move this process into namespaces of its own, under a new root, with an empty folder in memory.

    The root holds the libraries of this Python and of the system, read-only, and devices without state.
    Nothing else of the disk has a name there, no process can be seen, and without `network` no interface is
    left. Nothing of it outlives the process.

    Args:
        network: Whether the network stays, and with it the files that name servers.

    Raises:
        OSError: The kernel does not allow it; the process is of no use any more.
    """
    if sys.platform != "linux":
        raise OSError(_ENOSYS, f"{sys.platform} has no user namespaces")
    user, group = os.geteuid(), os.getegid()
    places = _list_places(network=network)
    _call("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_IPC | (0 if network else _NEW_NETWORK))
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"65534 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"65534 {group} 1", encoding="ascii")
    _call("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)
    _change_root(places)
    options = f"size={DISK},mode=0700".encode()
    _call("mount", b"tmpfs", FOLDER.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, options)
    os.chdir(FOLDER)


def _list_places(*, network: bool) -> dict[Path, Path]:
    """Return where the new root shows what, under the names in use and the real ones."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    wanted = [Path(each) for each in (LIBRARIES + RESOLVER if network else LIBRARIES)]
    wanted += [Path(prefix, name) for prefix in prefixes for name in ("lib", "lib64", "share")]
    wanted += [Path(each) for each in sys.path if Path(each).name in {"site-packages", "dist-packages"}]
    wanted += [Path(os.__file__).parent, Path(__file__).parents[1]]
    found = [(each, each.resolve()) for each in wanted if os.access(each, os.R_OK)]
    return dict(found) | {real: real for _, real in found}


def _change_root(places: dict[Path, Path]) -> None:
    """Make the places, a few devices and nothing else the root of this process, read-only."""
    options = _NO_SUID | _NO_DEVICES
    _call("mount", b"tmpfs", b"/proc", b"tmpfs", options, b"size=1m,mode=0755")  # any folder does
    Path("/proc/old").mkdir()
    _call("pivot_root", b"/proc", b"/proc/old")
    os.chdir("/")
    for place in sorted(places):
        if places.keys().isdisjoint(place.parents):
            _show(Path(f"/old{places[place]}"), place, _READ_ONLY | _NO_SUID | _NO_DEVICES)
    for name in DEVICES:
        if Path("/old/dev", name).is_char_device():
            _show(Path("/old/dev", name), Path("/dev", name), _READ_ONLY | _NO_SUID | _NO_EXEC)
    Path(FOLDER).mkdir()
    Path("/dev", "shm").symlink_to(FOLDER)  # locks between threads have names there
    _call("umount2", b"/old", _DETACH)
    Path("/old").rmdir()
    _restrict(Path("/"), _READ_ONLY | _NO_SUID | _NO_DEVICES, 0)


def _show(source: Path, place: Path, attributes: int) -> None:
    if source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    _call("mount", bytes(source), bytes(place), None, _BIND | _RECURSIVE, None)
    _restrict(place, attributes, _AT_RECURSIVE)


def _restrict(place: Path, attributes: int, reach: int) -> None:
    packed = struct.pack("=QQQQ", attributes, 0, 0, 0)
    _call("syscall", _MOUNT_SETATTR, _AT_FDCWD, bytes(place), reach, packed, len(packed))


def limit_resources() -> None:
    """Bound memory, files, processes and cores, as far as the system knows such limits."""
    try:
        import resource
    except ImportError:
        return  # Windows
    wanted = {"AS": MEMORY, "FSIZE": DISK, "NOFILE": OPEN_FILES, "CORE": 0}
    if not _has_filter():
        wanted["NPROC"] = PROCESSES
    for name, limit in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (value, value))
    if sys.platform == "linux":
        cores = sorted(os.sched_getaffinity(0))
        first = os.getpid() % len(cores)
        os.sched_setaffinity(0, {cores[(first + step) % len(cores)] for step in range(CORES)})


def limit_time(seconds: float) -> None:
    """Let this process use the cores for so many seconds of wall time from now on, then end it."""
    try:
        import resource
    except ImportError:
        return
    limit = int(time.process_time() + CORES * seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def lock_in(parent: int, *, network: bool) -> None:
    """Give up all rights, die with the parent, and refuse new processes and, without `network`, sockets.

    Args:
        parent: Process this one must not outlive.
        network: Whether sockets stay.
    """
    if sys.platform != "linux":
        return
    machine, filters = platform.machine(), _has_filter()
    _call("capset", struct.pack("=Ii", _CAPABILITIES_3, 0), bytes(24))
    _call("prctl", _DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)  # dropping rights would reset it
    if os.getppid() != parent:
        os._exit(1)
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if filters:
        _filter_calls(machine, network=network)


def _has_filter() -> bool:
    return sys.platform == "linux" and platform.machine() in _AUDIT


def _number(call: str, machine: str) -> int:
    return _NUMBERS[call][list(_AUDIT).index(machine)]


def _filter_calls(machine: str, *, network: bool) -> None:
    codes = dict.fromkeys(_NUMBERS, _EPERM) | {"fork": _EAGAIN, "vfork": _EAGAIN, "socket": _EACCES}
    free = {"clone", "prlimit64", *(["socket"] if network else [])}
    refused = {_number(call, machine): code for call, code in codes.items() if call not in free}
    refused |= {_PIDFD_SIGNAL: _EPERM}
    refused |= {_CLONE3: _ENOSYS, _IO_URING: _ENOSYS}  # their arguments lie in memory, beyond a filter
    refused.pop(-1, None)
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 0x40000000),  # the x32 twins of all calls
        (_RETURN, 0, 0, _REFUSE | _EPERM),
    ]
    for number, code in refused.items():
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | code)]
    steps += [
        (_EQUAL, 0, 3, _number("clone", machine)),
        (_LOAD, 0, 0, 16),  # its flags: a thread is no new process
        (_ANY_BIT, 5, 0, _THREAD),
        (_RETURN, 0, 0, _REFUSE | _EAGAIN),
        (_EQUAL, 0, 3, _number("prlimit64", machine)),
        (_LOAD, 0, 0, 16),  # its process: none but itself
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    pointer = struct.pack("@HP", len(steps), ctypes.addressof(program))
    _call("prctl", _SECCOMP, _FILTER, pointer, 0, 0)


def _call(name: str, *arguments: bytes | int | None) -> None:
    """Call a function of the C library; -1 is the error it is.

    Raises:
        OSError: What the function says.
    """
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*converted) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
