"""How many cores this process may use: by affinity and by control group."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["cores", "host_cores"]

_GROUPS = ((Path("/sys/fs/cgroup"), "cpu.max"), (Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us"))
"""Where control groups of both versions have their files, and which one has the limit."""


def host_cores() -> int:
    """The cores that this process may run on."""
    # Not every system has either.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores() -> float:
    """Those, or the part of them that its control group allows."""
    quota = float("inf")
    with suppress(OSError, ValueError, IndexError):
        quota = _quota()
    return min(quota, float(host_cores()))


def _quota() -> float:
    """The cores that the control group allows; infinite without a limit, or where there is no such thing."""
    group = Path("/proc/self/cgroup")
    names = [line.split(":", 2)[2] for line in group.read_text().splitlines()] if group.exists() else []
    found = [float("inf")]
    for name in {*names, "/"}:
        for root, path in _GROUPS:
            file = root / name.lstrip("/") / path
            if not file.exists():
                continue
            words = file.read_text().split()
            if path == "cpu.cfs_quota_us":
                words.append((file.parent / "cpu.cfs_period_us").read_text().strip())
            if words[0] not in {"max", "-1"}:
                found.append(int(words[0]) / int(words[1]))
    return min(found)
