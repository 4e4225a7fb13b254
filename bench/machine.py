"""Describes the machine and the versions, so that a table names its origin."""
import datetime
import os
import platform
import re
import subprocess


def first_line(command: list[str]) -> str:
    """The first line a command prints, or "missing"."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "missing"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines and done.returncode == 0 else "missing"


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def field(text: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def jemalloc_version(lock_file: str) -> str:
    """The version of jemalloc that a Cargo.lock names."""
    found = re.search(r'name = "tikv-jemalloc-sys"\nversion = "([^"]+)"', read(lock_file))
    return found.group(1) if found else "missing"


def describe(root: str) -> dict[str, str]:
    """The text above every table."""
    memory_kib = int(field(read("/proc/meminfo"), "MemTotal").split()[0])
    nodes = [name for name in os.listdir("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)] \
        if os.path.isdir("/sys/devices/system/node") else []
    changed = first_line(["git", "-C", root, "status", "--porcelain", "--untracked-files=no"]) != "missing"
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": field(read("/proc/cpuinfo"), "model name"),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_kib / 2**20:.1f} GiB, {max(len(nodes), 1)} node(s)",
        "huge pages": read("/sys/kernel/mm/transparent_hugepage/enabled").strip() or "unknown",
        "kernel": platform.release(),
        "load at start": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "isotherm": first_line(["git", "-C", root, "rev-parse", "--short", "HEAD"])
        + (" with changes" if changed else ""),
        "jemalloc": jemalloc_version(os.path.join(root, "Cargo.lock")),
        "glibc": platform.libc_ver()[1],
        "compiler": first_line(["g++", "--version"]),
        "redis": first_line(["redis-server", "--version"]),
    }
