"""A Landlock domain: from inside it no process outside can be traced, read through /proc, or signalled.

The domain also denies every change of the file system, as a second wall behind the system-call filter.
It needs no privilege (`no_new_privs`), and nothing takes it off again.
"""

from __future__ import annotations

import ctypes
import os

_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same on every machine
_QUERY_VERSION = 1
_CHANGES = 0b1_1111_1111_0010
"""Writing, removing and making files of any kind: access rights 1 and 4 to 12, known since version 1."""
_SCOPES_SINCE = 6
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2


class LandlockUnavailableError(Exception):
    """This kernel has no Landlock, or it is turned off."""


def enter() -> None:
    """Put this process, and whatever it executes, into a domain of its own.

    Raises:
        LandlockUnavailableError: the kernel refused; nothing has changed but `no_new_privs`.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long

    def call(number: int, *arguments: object) -> int:
        result = int(libc.syscall(ctypes.c_long(number), *arguments))
        if result < 0:
            raise LandlockUnavailableError(f"landlock: {os.strerror(ctypes.get_errno())}")
        return result

    version = call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_QUERY_VERSION))
    attributes = (ctypes.c_uint64 * 3)()  # struct landlock_ruleset_attr: files, network, scopes
    attributes[0] = _CHANGES
    size = 8
    if version >= _SCOPES_SINCE:
        attributes[2] = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS
        size = 24
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise LandlockUnavailableError(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    ruleset = call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint(0))
    try:
        call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)
