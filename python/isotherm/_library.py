"""The functions of isotherm.h in this process, and its structs."""
import ctypes

# Version of this package's structs, as ISOTHERM_HEADER_VERSION.
HEADER_VERSION = 103
# `ISOTHERM_REASONS`.
REASONS = 8
# `ISOTHERM_FREQUENCY_MAX`.
FREQUENCY_MAX = 20_000


class Options(ctypes.Structure):
    """`struct isotherm_options`."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("fast_bytes", ctypes.c_uint64),
        ("share", ctypes.c_double),
    ]


class Result(ctypes.Structure):
    """`struct isotherm_result`."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("promoted_bytes", ctypes.c_uint64),
        ("demoted_bytes", ctypes.c_uint64),
        ("placed_bytes", ctypes.c_uint64),
        ("failed_bytes", ctypes.c_uint64),
        ("selected_bytes", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("selection_ns", ctypes.c_uint64),
        ("migration_ns", ctypes.c_uint64),
        ("capacity_bytes", ctypes.c_uint64),
        ("stayed_bytes", ctypes.c_uint64 * REASONS),
        ("frequency", ctypes.c_uint64),
    ]


class Object(ctypes.Structure):
    """`struct isotherm_object`."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("name", ctypes.c_char * 64),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("resident_bytes", ctypes.c_uint64),
        ("fast_bytes", ctypes.c_uint64),
        ("selected_bytes", ctypes.c_uint64),
        ("placed_bytes", ctypes.c_uint64),
        ("promoted_bytes", ctypes.c_uint64),
        ("demoted_bytes", ctypes.c_uint64),
        ("stayed_bytes", ctypes.c_uint64 * REASONS),
    ]


class Statistics(ctypes.Structure):
    """`struct isotherm_statistics`."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("profiling", ctypes.c_uint32),
        ("objects", ctypes.c_uint64),
        ("object_bytes", ctypes.c_uint64),
        ("fast_bytes", ctypes.c_uint64),
        ("slow_bytes", ctypes.c_uint64),
        ("optimizations", ctypes.c_uint64),
        ("promoted_bytes", ctypes.c_uint64),
        ("demoted_bytes", ctypes.c_uint64),
    ]


ARGUMENTS = {
    "serves_header": [ctypes.c_int],
    "version": [],
    "alloc": [ctypes.c_char_p, ctypes.c_size_t],
    "calloc": [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t],
    "register": [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t],
    "unregister": [ctypes.c_void_p],
    "profile_start": [],
    "profile_start_at": [ctypes.c_uint32],
    "profile_stop": [],
    "optimize": [ctypes.POINTER(Options), ctypes.POINTER(Result)],
    "read_statistics": [ctypes.POINTER(Statistics)],
    "read_object": [ctypes.c_uint64, ctypes.POINTER(Object)],
    "hint": [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int],
}
RESULTS = {"alloc": ctypes.c_void_p, "calloc": ctypes.c_void_p}

# Calls release the interpreter's lock: other threads of Python run while memory moves.
_PROCESS = ctypes.CDLL(None)


def find(name):
    """The runtime's function, or None where no runtime is loaded."""
    try:
        function = getattr(_PROCESS, f"isotherm_{name}")
    except AttributeError:
        return None
    function.argtypes = ARGUMENTS[name]
    function.restype = RESULTS.get(name, ctypes.c_int)
    return function


def is_served():
    """Whether the runtime, if one is loaded, serves this package. A runtime before version 102 cannot be asked."""
    serves, version = find("serves_header"), find("version")
    if serves:
        return bool(serves(HEADER_VERSION))
    return version is not None and version() // 100 == HEADER_VERSION // 100


IS_SERVED = is_served()
FUNCTIONS = {name: find(name) if IS_SERVED else None for name in ARGUMENTS}
