//! [`careful_word`] reads a word of this process's own memory by a system call, and reports a failure where a plain read would fault: for
//! the first look at CPython's records, whose addresses may be wrong.

use isotherm_sys::system_call::call;

/// The word at an address; `None` where none can be read.
pub(super) fn careful_word(address: usize) -> Option<usize> {
    let mut word = 0usize;
    let vector = |start: *mut libc::c_void| libc::iovec {
        iov_base: start,
        iov_len: size_of::<usize>(),
    };
    let local = vector((&raw mut word).cast());
    let remote = vector(core::ptr::without_provenance_mut(address));
    let process = rustix::process::getpid().as_raw_nonzero().get() as usize;
    let arguments = [
        process,
        (&raw const local).expose_provenance(),
        1,
        (&raw const remote).expose_provenance(),
        1,
    ];
    // SAFETY: the kernel writes the word, whose size it is given, and reads two lists of one entry.
    let read = unsafe { call(libc::SYS_process_vm_readv, arguments) };
    (read == Ok(size_of::<usize>())).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::careful_word;

    #[test]
    fn a_word_is_read_and_an_address_without_memory_is_no_fault() {
        let word = 0x1234_usize;
        assert_eq!(
            careful_word((&raw const word).expose_provenance()),
            Some(0x1234)
        );
        for address in [0, 8, usize::MAX - 7] {
            assert_eq!(careful_word(address), None, "{address:#x}");
        }
    }
}
