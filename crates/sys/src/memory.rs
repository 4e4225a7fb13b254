//! Mapping, protecting and placing memory.
