//! Performance events and their ring buffers.
