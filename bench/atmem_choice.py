"""A program that is optimized at its own request behind its first repetition, and the bytes that a policy chooses of it."""
from measure import Contender, Program, run_once
from tools import Tools

# What places data at the program's request: the paper's selection, and ours.
ATMEM, OURS = "atmem", "thermos"
# The same program in the same placement as before its profile: first touch, and nothing that observes it.
UNPROFILED = "unprofiled"
# What places data by a plan.
ALL_SLOW, FIRST_TOUCH, ALL_FAST = BY_PLAN = ["all-slow", "first-touch", "all-fast"]
# The times that the graph program prints: of the first repetition, and of one behind it, in which everything is as it was placed.
FIRST, LATER = "first_seconds", "later_seconds"


def optimized(tools: Tools, policy: str, tiers: str, fast: str) -> Contender:
    """Profiled in the first repetition, moved, and timed in the others, at the program's request."""
    return Contender(policy, tools.optimized(policy, tiers, fast), ["--optimize"])


def unprofiled(tools: Tools, tiers: str, fast: int) -> Contender:
    """Placed by first touch as the runs that are optimized; no process answers its requests."""
    return Contender(UNPROFILED, tools.by_policy("none", tiers, fast), ["--optimize"])


def choice(tools: Tools, made: Program, policy: str, tiers: str, limit: float) -> int:
    """Bytes that a policy selects where all memory may be fast, a mebibyte at least."""
    measures = run_once(made, optimized(tools, policy, tiers, "100%"), limit).measures
    return max(int(measures.get("selected_bytes", 0)), 1 << 20)
