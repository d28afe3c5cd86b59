"""The settings of the embedded server, for a machine with two cores and a few gigabytes."""

from __future__ import annotations

import os
from pathlib import Path

_SHARED_MEMORY_WANTED = 1 << 30

_SETTINGS = {
    "listen_addresses": "''",  # the unix socket is the only way in
    "unix_socket_permissions": "0700",
    "max_connections": "64",
    "work_mem": "32MB",
    "maintenance_work_mem": "256MB",
    "max_parallel_workers_per_gather": "1",
    "random_page_cost": "1.1",
    "jit": "off",
    # No replicas: rows that are copied into a table made in the same transaction need no WAL.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # Few checkpoints during an index run; at most this much log is kept on disk.
    "max_wal_size": "1GB",
    "min_wal_size": "80MB",
    "checkpoint_timeout": "15min",
    # A sealed snapshot survives a power cut. Writers turn this off for content rows, which the seal's
    # own COMMIT makes durable: the log is written in order.
    "synchronous_commit": "on",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",  # statements may quote foreign code: they stay out of the log
    "log_line_prefix": "'%m [%p] '",
    "timezone": "'UTC'",
}


def render_settings(socket_folder: Path, port: int) -> str:
    """The text of `kb.conf`, included by postgresql.conf and written anew at every start."""
    settings = dict(_SETTINGS)
    settings["unix_socket_directories"] = _quoted(str(socket_folder))
    settings["port"] = str(port)
    settings |= _memory_settings(_physical_memory())
    if _shared_memory() < _SHARED_MEMORY_WANTED:
        # Containers often get 64 MB of /dev/shm, where a parallel index build fails.
        settings["dynamic_shared_memory_type"] = "mmap"
    lines = [f"{name} = {value}" for name, value in settings.items()]
    return "\n".join(["# Written by kb at every start; changes are lost.", *lines, ""])


def _memory_settings(physical: int) -> dict[str, str]:
    """An eighth of the machine for pages, between 128 MB and 2 GB; they are taken when they are first used.

    A search touches thousands of pages of a vector index: each one that is only in the system's cache has to
    be asked for and copied.
    """
    buffers = min(max(physical >> 3, 128 << 20), 2 << 30)
    return {
        "shared_buffers": f"{buffers >> 20}MB",
        "effective_cache_size": f"{max(physical >> 1, 1 << 30) >> 20}MB",
    }


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # this system does not tell
        return 0


def _quoted(text: str) -> str:
    # unix_socket_directories is a list: the inner quotes keep a comma or a blank inside one name.
    inner = '"' + text.replace('"', '""') + '"'
    return "'" + inner.replace("'", "''") + "'"


def _shared_memory() -> int:
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  (measured, not written to)
    except OSError:
        return _SHARED_MEMORY_WANTED
    return found.f_bavail * found.f_frsize
