"""Statuses and reasons, in the header's words."""
import enum

from ._library import FUNCTIONS


class Status(enum.IntEnum):
    """`enum isotherm_status`."""

    OK = 0
    ABSENT = 1
    NO_OBSERVER = 2
    NO_SAMPLES = 3
    BUSY = 4
    INVALID = 5
    OVERLAP = 6
    UNKNOWN = 7
    NOT_MOVABLE = 8
    NO_ROOM = 9
    FAILED = 10

    def __str__(self):
        return TEXTS[self]


TEXTS = {
    Status.OK: "done",
    Status.ABSENT: "Isotherm's runtime is not loaded, or is off",
    Status.NO_OBSERVER: "no process observes this one",
    Status.NO_SAMPLES: "nothing was profiled, so nothing was moved",
    Status.BUSY: "another thread waits for an answer",
    Status.INVALID: "an argument is out of range",
    Status.OVERLAP: "a part of the memory has a name already",
    Status.UNKNOWN: "no registered object begins there",
    Status.NOT_MOVABLE: "this memory stays where it is",
    Status.NO_ROOM: "a table of the runtime is full",
    Status.FAILED: "the kernel refused",
}


class Reason(enum.IntEnum):
    """`enum isotherm_reason`: why data is not in fast memory, or did not move. A place in `Result.stayed_bytes`."""

    CAPACITY = 0
    NOT_HOT = 1
    NOT_TOUCHED = 2
    NOT_MOVABLE = 3
    NO_ROOM = 4
    IN_USE = 5
    SHARED = 6
    REFUSED = 7

    def __str__(self):
        return REASON_TEXTS[self]


REASON_TEXTS = {
    Reason.CAPACITY: "hotter data takes the fast memory that may be used",
    Reason.NOT_HOT: "neither samples nor hints prove it hot",
    Reason.NOT_TOUCHED: "it has no pages",
    Reason.NOT_MOVABLE: "the run does not place this memory",
    Reason.NO_ROOM: "the memory that it was to enter was full",
    Reason.IN_USE: "its pages were in use",
    Reason.SHARED: "it is shared with another process since a fork",
    Reason.REFUSED: "the kernel refused to move it",
}


class Error(ValueError):
    """A call that no right program makes; `status` says why."""

    def __init__(self, status):
        super().__init__(str(status))
        self.status = status


def call(name, *arguments):
    """Calls a function that returns a status. Where data cannot be placed the program goes on; a wrong argument is an Error."""
    function = FUNCTIONS[name]
    status = Status.ABSENT if function is None else Status(function(*arguments))
    if status == Status.INVALID:
        raise Error(status)
    return status
