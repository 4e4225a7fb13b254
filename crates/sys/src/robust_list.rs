//! [`robust_list`] asks the kernel for the address of a thread's list of robust mutexes. The GNU C library keeps that list in the block
//! that describes the thread, at the end of its stack: by the address the runtime finds the stacks of the program's threads.

use core::ffi::c_void;
use core::ptr;

use crate::system_call::{Result, call};

/// The address of a thread's list of robust mutexes; 0 where the thread has none.
///
/// `long get_robust_list(int pid, struct robust_list_head **head, size_t *bytes)`: the GNU C library gives each thread such a list at its
/// start; other C libraries do so once a thread uses a robust mutex.
/// See [get_robust_list(2)](https://man7.org/linux/man-pages/man2/get_robust_list.2.html).
///
/// # Errors
/// `ESRCH`: the thread has ended. `EPERM`: it belongs to another process, which may not be read.
pub fn robust_list(thread: u32) -> Result<usize> {
    let mut head = ptr::null_mut::<c_void>();
    let mut bytes = 0_usize;
    let arguments = [
        thread as usize,
        ptr::from_mut(&mut head).expose_provenance(),
        ptr::from_mut(&mut bytes).expose_provenance(),
    ];
    // SAFETY: both pointers are to live variables of the types that the call writes; it only reads kernel state.
    unsafe { call(libc::SYS_get_robust_list, arguments) }?;
    Ok(head.addr())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::robust_list;

    #[test]
    fn the_list_of_another_thread_is_behind_its_variables() {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let variable = 0_u8;
            let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            let _ = tell.send((number, std::ptr::from_ref(&variable).addr()));
            let _ = ended.recv();
        });
        let (number, variable) = told.recv().expect("the thread runs");
        let list = robust_list(number).expect("the thread lives");
        drop(end);
        thread.join().expect("no panic");
        // A C library without such a list has 0.
        assert!(list == 0 || (variable..variable + (64 << 20)).contains(&list));
    }
}
