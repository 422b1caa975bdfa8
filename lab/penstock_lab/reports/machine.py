"""What this machine is, read from the operating system without running a command."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from penstock_lab.reports.report import Machine


def this_machine() -> Machine:
    """Cores that this process may use, processor, memory in MB, and the versions that matter."""
    return Machine(
        cores=cores(),
        cpu=_processor(Path("/proc/cpuinfo")),
        memory=psutil.virtual_memory().total // 2**20,
        python=platform.python_version(),
        spark=version("pyspark"),
    )


def cores() -> int:
    """Cores that this process may run on, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def penstock_version() -> str:
    """The installed version, or the word "source" when Penstock runs from a plain source tree."""
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "source"


def _processor(cpuinfo: Path) -> str:
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            field, _, value = line.partition(":")
            if field.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
