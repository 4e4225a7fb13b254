#!/usr/bin/env python3
"""Writes a plan that places parts of each site of a profile: in the tiers of slow-by-time.plan, every other 64 KiB of an object's
first MiB is fast, and all else slow. A program that left no profile gets slow-by-time.plan itself.

Usage: parts.py ISOTHERM PROFILE PLAN
"""
import os
import subprocess
import sys

KIB = 64
PARTS = 8


def parts(site: str) -> list[str]:
    starts = [2 * KIB * part for part in range(PARTS)]
    return [f"part {site} fast from {start}KiB to {start + KIB}KiB value 0 weight 0B" for start in starts]


def main() -> int:
    isotherm, profile, plan = sys.argv[1:]
    by_time = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow-by-time.plan")
    with open(by_time) as file:
        whole = file.read().splitlines()
    command = [isotherm, "--quiet", "plan", profile, "--policy", "all-slow", "--fast", "64MiB", "-o", plan]
    if not os.path.exists(profile) or subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
        with open(plan, "w") as file:
            file.write("\n".join(whole) + "\n")
        return 0
    with open(plan) as file:
        lines = file.read().splitlines()
    tiers = [line for line in whole if line.startswith("tier ")]
    written: list[str] = []
    for line in lines:
        words = line.split()
        if words[:1] == ["tier"]:
            written += tiers
            tiers = []
        elif words[:1] == ["site"] and words[1] != "shared":
            written += [line, *parts(words[1])]
        elif words[:1] != ["expected"]:
            written.append(line)
    with open(plan, "w") as file:
        file.write("\n".join(written) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
