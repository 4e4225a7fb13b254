//! Queries the nodes of pages and moves pages to another node, by `move_pages(2)`.
//!
//! The kernel moves a page while no thread can touch it and changes no content, so these wrappers are safe for
//! any process.
//!
//! Results that the manual pages do not describe (the same on Linux 6.1, 6.12 and 7.2): of a huge page only the
//! first page may be named, any other in the same call is `EBUSY`; a target node without room fails the call
//! with `ENOMEM` and **leaves the statuses as they were**; a missing node fails it with `ENODEV` after the
//! pages before it were moved; a page that was never touched is `EFAULT` (6.1) or `ENOENT`; a page that is
//! shared since a fork is `EACCES`.

use crate::system_call::{Errno, Result, call};

/// `MPOL_MF_MOVE`: pages of this process alone.
const OWN_PAGES: usize = 1 << 1;

/// Writes the node of each page, or a negative error number, into `status`. `process` 0 is the caller. The
/// query touches no page.
///
/// # Errors
/// `ESRCH`: no such process. `EPERM`: not ours. `EINVAL`: lists of different length.
pub fn nodes_of(process: u32, addresses: &[usize], status: &mut [i32]) -> Result<()> {
    move_call(process, addresses, None, status).map(|_| ())
}

/// Moves each page to the node beside it. Returns the number of pages that could have been moved but were not
/// (Linux 4.17); `status` has a node or a negative error number for each page **that the call reached**: fill
/// it with a number of your own before.
///
/// # Errors
/// `ENOMEM`: no room on a node. `ENODEV`: no such node. `EACCES`: a node outside the cpuset.
/// `EPERM`, `ESRCH`: not ours, not running. `EINVAL`: lists of different length.
pub fn move_to(
    process: u32,
    addresses: &[usize],
    nodes: &[i32],
    status: &mut [i32],
) -> Result<usize> {
    if nodes.len() != addresses.len() {
        return Err(Errno::INVAL);
    }
    move_call(process, addresses, Some(nodes), status)
}

fn move_call(
    process: u32,
    addresses: &[usize],
    nodes: Option<&[i32]>,
    status: &mut [i32],
) -> Result<usize> {
    if status.len() != addresses.len() {
        return Err(Errno::INVAL);
    }
    let arguments = [
        process as usize,
        addresses.len(),
        addresses.as_ptr() as usize,
        nodes.map_or(0, |nodes| nodes.as_ptr() as usize),
        status.as_mut_ptr() as usize,
        OWN_PAGES,
    ];
    // SAFETY: the kernel reads and writes the three lists, whose lengths were compared above; a move of a page
    // changes no content, in any process.
    unsafe { call(libc::SYS_move_pages, arguments) }
}

#[cfg(test)]
mod tests {
    use super::{move_to, nodes_of};
    use crate::system_call::Errno;

    #[test]
    fn a_touched_page_has_a_node_and_stays_there_when_it_is_moved_there() {
        let data = vec![1_u8; 3 * 4096];
        let page = (data.as_ptr() as usize).next_multiple_of(4096);
        let mut status = [i32::MIN];
        match nodes_of(0, &[page], &mut status) {
            Err(error) => return isotherm_skip::skip!("move_pages: {error:?}"),
            Ok(()) => assert!(status[0] >= 0, "{status:?}"),
        }
        let node = status[0];
        assert_eq!(move_to(0, &[page], &[node], &mut status), Ok(0));
        assert_eq!(status, [node]);
    }

    #[test]
    fn lists_of_different_length_and_absent_processes_are_refused() {
        let mut status = [0; 2];
        assert_eq!(nodes_of(0, &[4096], &mut status), Err(Errno::INVAL));
        assert_eq!(
            move_to(0, &[4096, 8192], &[0], &mut status),
            Err(Errno::INVAL)
        );
        let absent = i32::MAX as u32;
        assert!(nodes_of(absent, &[4096], &mut status[..1]).is_err());
    }
}
