"""NumPy's allocation handler (NEP 49): arrays made in a `with named(...)` are objects of that name.

The handler's first argument is a pointer of ours. It is the name, so that NumPy calls `isotherm_alloc` and `isotherm_calloc` itself, without a
step through Python; blocks are grown and freed by NumPy's default handler, which calls `realloc` and `free`.
"""
import ctypes

from ._library import FUNCTIONS

# Places in NumPy's table of C functions, which never change.
SET_HANDLER = 304
DEFAULT_HANDLER = 306
CAPSULE = b"mem_handler"
OLDEST = (1, 22)


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler`, version 1."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer_of.restype = ctypes.c_void_p
_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_of.restype = ctypes.py_object


def _functions():
    """NumPy's table of C functions."""
    import numpy

    if tuple(int(part) for part in numpy.__version__.split(".")[:2]) < OLDEST:
        raise ImportError(f"isotherm.named needs NumPy 1.22 or newer, and this is {numpy.__version__}")
    core = numpy._core if hasattr(numpy, "_core") else numpy.core
    table = _pointer_of(core._multiarray_umath._ARRAY_API, None)
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))


class Handlers:
    """One handler for each name. NumPy's arrays point to theirs, so that none is ever freed."""

    def __init__(self):
        functions = _functions()
        self._set = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[SET_HANDLER])
        default = ctypes.cast(functions[DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object))[0]
        self._default = _Handler.from_address(_pointer_of(default, CAPSULE))
        self._made = {}

    def enter(self, name):
        """Has this context's arrays allocated under the name; returns the handler that did before."""
        if name not in self._made:
            text = ctypes.create_string_buffer(name)
            # A runtime of before version 101 gives zeros without a name.
            zeroed = FUNCTIONS["calloc"]
            handler = _Handler(
                name=b"isotherm",
                version=1,
                context=ctypes.addressof(text),
                malloc=ctypes.cast(FUNCTIONS["alloc"], ctypes.c_void_p).value,
                calloc=ctypes.cast(zeroed, ctypes.c_void_p).value if zeroed else self._default.calloc,
                realloc=self._default.realloc,
                free=self._default.free,
            )
            self._made[name] = _capsule_of(ctypes.addressof(handler), CAPSULE, None), handler, text
        return self._set(self._made[name][0])

    def leave(self, before):
        """Gives the allocations back to the handler that `enter` returned."""
        self._set(before)
