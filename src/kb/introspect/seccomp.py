"""A system-call filter that no later code of the process can take off again.

It denies what an application needs no more once it is loaded into memory and asked for its routes:
sockets, new processes, signals to others, tracing, mounting, kernel keys and modules; with
`deny_writes` also every call that could change a file. Threads, reading and computing stay possible.
The filter needs no privilege (`no_new_privs`) and is inherited over `execve`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JEQ = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JGE = 0x35
_JSET = 0x45
_RETURN = 0x06

_CLONE_THREAD = 0x00010000
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_X32_BIT = 0x40000000

# Requests of ioctl(2) that change something though the descriptor was opened for reading:
# fake terminal input (TIOCSTI, TIOCLINUX) and a file's attributes (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR).
_DENIED_IOCTLS = (0x5412, 0x541C, 0x40086602, 0x401C5820)

# What makes the kernel send a signal to another process when a descriptor becomes ready: an owner, a signal
# of choice (F_SETOWN, F_SETSIG, F_SETOWN_EX), and the same by ioctl (FIOSETOWN, SIOCSPGRP, FIOASYNC).
_DENIED_FCNTLS = (8, 10, 15)
_DENIED_OWNERS = (0x8901, 0x8902, 0x5452)

_SAME_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434,
    "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469, "pidfd_send_signal": 424,
    "process_madvise": 440, "process_mrelease": 448,
}  # fmt: skip

_X86_64 = _SAME_EVERYWHERE | {
    "open": 2, "ioctl": 16, "shmget": 29, "shmat": 30, "socket": 41, "connect": 42, "bind": 49, "listen": 50,
    "clone": 56, "fork": 57, "vfork": 58, "kill": 62, "semget": 64, "msgget": 68, "truncate": 76,
    "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101, "syslog": 103,
    "rt_sigqueueinfo": 129, "utime": 132, "mknod": 133, "pivot_root": 155, "adjtimex": 159, "chroot": 161,
    "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "setxattr": 188, "lsetxattr": 189,
    "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "tkill": 200,
    "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "openat": 257, "mkdirat": 258, "mknodat": 259, "fchownat": 260,
    "futimesat": 261, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268,
    "unshare": 272, "utimensat": 280, "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300,
    "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "renameat2": 316,
    "memfd_create": 319, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    "fcntl": 72, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203,
    "ioprio_set": 251, "migrate_pages": 256, "move_pages": 279, "sched_setattr": 314,
}  # fmt: skip

_AARCH64 = _SAME_EVERYWHERE | {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "ioctl": 29, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38,
    "umount2": 39, "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "openat": 56, "quotactl": 60, "utimensat": 88, "acct": 89, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
    "ptrace": 117, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "reboot": 142,
    "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "mq_open": 180,
    "msgget": 186, "semget": 190, "shmget": 194, "shmat": 196, "socket": 198, "bind": 200, "listen": 201,
    "connect": 203, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224,
    "swapoff": 225, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "renameat2": 276,
    "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
    "fcntl": 25, "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "migrate_pages": 238, "move_pages": 239, "sched_setattr": 274,
}  # fmt: skip

_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

_ALWAYS_DENIED = (
    "socket", "connect", "bind", "listen", "fork", "vfork", "ptrace", "process_vm_readv",
    "process_vm_writev", "kcmp", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
    "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "bpf",
    "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "init_module", "finit_module",
    "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "settimeofday",
    "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname", "iopl", "ioperm", "acct",
    "quotactl", "syslog", "name_to_handle_at", "open_by_handle_at", "memfd_create", "memfd_secret",
    "shmget", "shmat", "semget", "msgget", "mq_open", "pidfd_open", "pidfd_getfd", "pidfd_send_signal",
    "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "fanotify_init", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "process_madvise", "process_mrelease", "setpriority", "sched_setparam",
    "sched_setscheduler", "sched_setaffinity", "sched_setattr", "ioprio_set", "migrate_pages", "move_pages",
)  # fmt: skip

_WRITES = (
    "creat", "mkdir", "mkdirat", "rmdir", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link",
    "linkat", "symlink", "symlinkat", "mknod", "mknodat", "truncate", "chmod", "fchmod", "fchmodat",
    "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat",
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat",
    "removexattrat", "file_setattr",
)  # fmt: skip


class SeccompUnavailableError(Exception):
    """This kernel or machine cannot install the filter; the caller must not go on without it."""


def install(*, deny_writes: bool) -> None:
    """Deny from here on, for this thread, its later threads and whatever it executes.

    Raises:
        SeccompUnavailableError: the machine is neither x86_64 nor aarch64 Linux, or the kernel refused.
    """
    program = build_program(platform.machine(), os.getpid(), deny_writes=deny_writes)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    head = Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise SeccompUnavailableError(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(head), 0, 0) != 0:
        raise SeccompUnavailableError(f"seccomp: {os.strerror(ctypes.get_errno())}")


def build_program(machine: str, own_pid: int, *, deny_writes: bool) -> bytes:
    """The filter as classic BPF, 8 bytes an instruction.

    Raises:
        SeccompUnavailableError: system-call numbers of `machine` are not known here.
    """
    if machine not in _MACHINES or os.name != "posix":
        raise SeccompUnavailableError(f"no system-call table for {machine or 'this machine'}")
    arch, numbers = _MACHINES[machine]
    code = [_op(_LOAD, 4), _op(_JEQ, arch, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, 0)]
    code += [_op(_JGE, _X32_BIT, 0, 1), _op(_RETURN, _ERRNO | errno.EPERM)]

    def deny(name: str, error: int = errno.EPERM) -> None:
        if name in numbers:
            code.extend((_op(_JEQ, numbers[name], 0, 1), _op(_RETURN, _ERRNO | error)))

    for name in _ALWAYS_DENIED:
        deny(name)
    deny("clone3", errno.ENOSYS)  # libc then falls back to clone, whose flags a filter can see
    code += _unless_flag(numbers["clone"], 0, _CLONE_THREAD)
    for name in ("kill", "tgkill"):
        code += _unless_equal(numbers[name], 0, (own_pid,))
    code += _unless_equal(numbers["prlimit64"], 0, (0, own_pid))
    for command in _DENIED_FCNTLS:
        code += _if_equal(numbers["fcntl"], 1, command)
    for request in (*_DENIED_IOCTLS, *_DENIED_OWNERS):
        code += _if_equal(numbers["ioctl"], 1, request)
    if deny_writes:
        for name in _WRITES:
            deny(name, errno.EROFS)
        deny("openat2", errno.ENOSYS)
        code += _if_flag(numbers["openat"], 2, _WRITE_FLAGS)
        if "open" in numbers:
            code += _if_flag(numbers["open"], 1, _WRITE_FLAGS)
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def _op(code: int, k: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, jump_true, jump_false, k)


def _argument(index: int) -> bytes:
    """Load the low half of an argument (little-endian machines only, as `_MACHINES` are)."""
    return _op(_LOAD, 16 + 8 * index)


def _conditional(number: int, body: list[bytes]) -> list[bytes]:
    """Run `body` for one system call, then have its number in the accumulator again."""
    return [_op(_JEQ, number, 0, len(body) + 1), *body, _op(_LOAD, 0)]


def _unless_flag(number: int, index: int, flag: int) -> list[bytes]:
    body = [_argument(index), _op(_JSET, flag, 1, 0), _op(_RETURN, _ERRNO | errno.EPERM)]
    return _conditional(number, body)


def _if_flag(number: int, index: int, flag: int) -> list[bytes]:
    body = [_argument(index), _op(_JSET, flag, 0, 1), _op(_RETURN, _ERRNO | errno.EROFS)]
    return _conditional(number, body)


def _if_equal(number: int, index: int, value: int) -> list[bytes]:
    body = [_argument(index), _op(_JEQ, value, 0, 1), _op(_RETURN, _ERRNO | errno.EPERM)]
    return _conditional(number, body)


def _unless_equal(number: int, index: int, values: tuple[int, ...]) -> list[bytes]:
    jumps = [_op(_JEQ, value & 0xFFFFFFFF, len(values) - at, 0) for at, value in enumerate(values)]
    body = [_argument(index), *jumps, _op(_RETURN, _ERRNO | errno.EPERM)]
    return _conditional(number, body)
