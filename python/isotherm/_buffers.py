"""The memory of arrays, by the buffer protocol."""
import ctypes

from ._status import Error, Status

# PyBUF_ANY_CONTIGUOUS with PyBUF_STRIDES: one block of memory in any order, writable or not.
REQUEST = 0x90 | 0x18


class _Buffer(ctypes.Structure):
    """`Py_buffer`."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_Buffer)]
_release.restype = None


class Block:
    """The memory of an array. While it is held, the array can neither move nor go."""

    def __init__(self, array):
        self._buffer = _Buffer()
        _get(array, self._buffer, REQUEST)
        self.address = self._buffer.buf
        self.bytes = self._buffer.len
        if not self.address or not self.bytes:
            self.release()
            raise Error(Status.INVALID)

    def release(self):
        _release(self._buffer)
