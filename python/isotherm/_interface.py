"""What programs call."""
import bisect
import ctypes
import dataclasses
import threading
import weakref

from . import _library
from ._buffers import Block
from ._library import FUNCTIONS
from ._status import Error, Status, call

POLICIES = {None: 0, "atmem": 1, "thermos": 2}
HEATS = {"hot": 0, "cold": 1, "streaming": 2, "unknown": 3}
LONGEST_NAME = 63


@dataclasses.dataclass(frozen=True)
class Result:
    """What `optimize` did: bytes and nanoseconds. `stayed_bytes[Reason.CAPACITY]` are the bytes that stayed for that reason."""

    status: Status
    promoted_bytes: int = 0
    demoted_bytes: int = 0
    placed_bytes: int = 0
    failed_bytes: int = 0
    selected_bytes: int = 0
    samples: int = 0
    selection_ns: int = 0
    migration_ns: int = 0
    capacity_bytes: int = 0
    frequency: int = 0
    stayed_bytes: tuple = (0,) * _library.REASONS


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the last optimization did to one data object. `name` is empty where the program gave none."""

    name: str
    address: int
    bytes: int
    samples: int
    resident_bytes: int
    fast_bytes: int
    selected_bytes: int
    placed_bytes: int
    promoted_bytes: int
    demoted_bytes: int
    stayed_bytes: tuple


@dataclasses.dataclass(frozen=True)
class Statistics:
    """What the runtime knows of the process."""

    status: Status
    profiling: bool = False
    objects: int = 0
    object_bytes: int = 0
    fast_bytes: int = 0
    slow_bytes: int = 0
    optimizations: int = 0
    promoted_bytes: int = 0
    demoted_bytes: int = 0


def _name(text):
    """A name as C reads it."""
    name = text.encode()
    if not 1 <= len(name) <= LONGEST_NAME or any(byte < 0x20 or byte == 0x7F for byte in name):
        raise ValueError(f"a name has 1 to {LONGEST_NAME} bytes of text without control characters, and {text!r} has not")
    return name


def _chosen(choices, value, what):
    if value not in choices:
        raise ValueError(f"{value!r} is no {what}; choose one of {', '.join(str(choice) for choice in choices)}")
    return choices[value]


def version():
    """Version of the runtime's interface; 0 where none is loaded that serves this package."""
    function = FUNCTIONS["version"]
    return function() if function else 0


class profile:
    """`with isotherm.profile():` profiles the process in the block. `status` is that of the start.

    frequency: samples a second of each thread's processor time, at most 20,000; without it as often as the run chooses.
    """

    def __init__(self, frequency=None):
        if frequency is not None and not 1 <= frequency <= _library.FREQUENCY_MAX:
            raise Error(Status.INVALID)
        self.frequency = frequency
        self.status = Status.ABSENT

    def __enter__(self):
        # A runtime before version 103 chooses the frequency itself.
        if self.frequency is None or FUNCTIONS["profile_start_at"] is None:
            self.status = call("profile_start")
        else:
            self.status = call("profile_start_at", self.frequency)
        return self

    def __exit__(self, *_):
        call("profile_stop")


def optimize(fast=None, share=0.0, policy=None):
    """Chooses from the last profile what is to be in fast memory, and moves it. Returns a Result when the moves are done;
    other threads run on meanwhile.

    fast: most bytes of fast memory, in whole pages; 0: what is fast leaves it. share: the same as a share (0 to 1) of the
    registered and recorded data. Without both it is the capacity of the run. policy: "atmem", "thermos", or None for that of the
    run.
    """
    if (fast is not None and fast < 0) or not 0 <= share <= 1:
        raise Error(Status.INVALID)
    # In the struct 0 bytes are no limit, and a limit below a page is no memory.
    fast = 0 if fast is None else max(fast, 1)
    options = _library.Options(
        size=ctypes.sizeof(_library.Options), policy=_chosen(POLICIES, policy, "policy"), fast_bytes=fast, share=share
    )
    done = _library.Result(size=ctypes.sizeof(_library.Result))
    status = call("optimize", options, done)
    numbers = [field.name for field in dataclasses.fields(Result)[1:-1]]
    return Result(status, *(getattr(done, field) for field in numbers), tuple(done.stayed_bytes))


def outcomes():
    """What the last optimization did to each data object: a list of Outcome, by address; empty where none was made."""
    found = []
    read = _library.Object(size=ctypes.sizeof(_library.Object))
    fields = [field.name for field in dataclasses.fields(Outcome)[1:-1]]
    while call("read_object", len(found), read) == Status.OK:
        numbers = (getattr(read, field) for field in fields)
        found.append(Outcome(read.name.decode(errors="replace"), *numbers, tuple(read.stayed_bytes)))
    return found


def statistics():
    """Objects, bytes in fast and slow memory, and moves, as Statistics."""
    read = _library.Statistics(size=ctypes.sizeof(_library.Statistics))
    status = call("read_statistics", read)
    fields = [field.name for field in dataclasses.fields(Statistics)[2:]]
    return Statistics(status, bool(read.profiling), *(getattr(read, field) for field in fields))


def hint(array, heat):
    """Says how hot an array is: "hot", "cold", "streaming", or "unknown", which takes the hint back."""
    number = _chosen(HEATS, heat, "hint")
    block = Block(array)
    try:
        return call("hint", block.address, block.bytes, number)
    finally:
        block.release()


def _owner(array):
    """The object whose end is the end of the array's memory: of a view, the array that it views."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


class _Registered:
    """The memory that has names of the program's, which nowhere overlaps."""

    def __init__(self):
        self._begins = []
        self._ends = {}
        # The end of an array, which may come at any time, ends its registration in the thread that holds this lock, too.
        self._lock = threading.RLock()

    def add(self, name, block):
        begin, end = block.address, block.address + block.bytes
        with self._lock:
            before = bisect.bisect_left(self._begins, end)
            if before and self._ends[self._begins[before - 1]] > begin:
                raise Error(Status.OVERLAP)
            status = call("register", name, begin, block.bytes)
            bisect.insort(self._begins, begin)
            self._ends[begin] = end
        return status

    def remove(self, address, status, held):
        """Ends what `add` began with this status, and the hold on the block."""
        with self._lock:
            if status == Status.OK:
                call("unregister", address)
            self._begins.remove(address)
            del self._ends[address]
        if held is not None:
            held.release()


_registered = _Registered()


class Registration:
    """The name of an array's memory, until `unregister`, the end of a `with`, or the end of the array.

    `status` is OK where the runtime took the name. An object that has no weak references, such as a bytearray, is held as long
    as its Registration is.
    """

    def __init__(self, array, name):
        name = _name(name)
        block = Block(array)
        try:
            self.status = _registered.add(name, block)
            self._end, block = self._watch(array, block)
        finally:
            if block is not None:
                block.release()

    def _watch(self, array, block):
        """What ends the registration, and the block if it need not be held until then."""
        try:
            end = weakref.finalize(_owner(array), _registered.remove, block.address, self.status, None)
        except TypeError:
            end, block = weakref.finalize(self, _registered.remove, block.address, self.status, block), None
        # The data lives to the end of the process.
        end.atexit = False
        return end, block

    def unregister(self):
        """Ends the registration; a second call does nothing."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unregister()


def register(array, name):
    """Names the memory of an array: anything with a contiguous buffer. Raises Error where a part of it is registered already.

    For memory that is mapped or static. What `malloc` gives has the name of its allocation, and the status is OVERLAP: name
    NumPy's arrays by `named`.
    """
    return Registration(array, name)


class named:
    """`with isotherm.named("grid"):` names the NumPy arrays that are made in the block; their memory keeps the name."""

    _handlers = None

    def __init__(self, name):
        self._name = _name(name)
        self._before = []

    def __enter__(self):
        if FUNCTIONS["alloc"] is not None:
            if named._handlers is None:
                from ._numpy import Handlers

                named._handlers = Handlers()
            self._before.append(named._handlers.enter(self._name))
        return self

    def __exit__(self, *_):
        if self._before:
            named._handlers.leave(self._before.pop())
