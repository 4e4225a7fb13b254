"""Statuses and reasons, in the header's words."""
import enum

from ._library import FUNCTIONS


class _Worded(enum.IntEnum):
    """A number of the header with its text."""

    def __new__(cls, number, text):
        member = int.__new__(cls, number)
        member._value_ = number
        member.text = text
        return member

    def __str__(self):
        return self.text


class Status(_Worded):
    """`enum isotherm_status`."""

    OK = 0, "done"
    ABSENT = 1, "Isotherm's runtime is not loaded, or is off"
    NO_OBSERVER = 2, "no process observes this one"
    NO_SAMPLES = 3, "nothing was profiled, so nothing was moved"
    BUSY = 4, "another thread waits for an answer"
    INVALID = 5, "an argument is out of range"
    OVERLAP = 6, "a part of the memory has a name already"
    UNKNOWN = 7, "no registered object begins there"
    NOT_MOVABLE = 8, "this memory stays where it is"
    NO_ROOM = 9, "a table of the runtime is full"
    FAILED = 10, "the kernel refused"


class Reason(_Worded):
    """`enum isotherm_reason`: why data is not in fast memory, or did not move. A place in `Result.stayed_bytes`."""

    CAPACITY = 0, "hotter data takes the fast memory that may be used"
    NOT_HOT = 1, "neither samples nor hints prove it hot"
    NOT_TOUCHED = 2, "it has no pages"
    NOT_MOVABLE = 3, "the run does not place this memory"
    NO_ROOM = 4, "the memory that it was to enter was full"
    IN_USE = 5, "its pages were in use"
    SHARED = 6, "it is shared with another process since a fork"
    REFUSED = 7, "the kernel refused to move it"


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
