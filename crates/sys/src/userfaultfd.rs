//! userfaultfd.
