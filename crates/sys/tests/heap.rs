//! Tests the settings of the C library's heap: a separate test program, because a test among others is not its only
//! thread.

use isotherm_sys::heap::keep_little;

fn main() {
    assert!(keep_little(), "the only thread may");
    for _ in 0..3 {
        let block = std::hint::black_box(vec![1_u8; 1 << 20]);
        // Even after another was freed, a large block is a separate mapping, and such a mapping begins with the
        // 16 bytes that the C library keeps before a block.
        let at = block.as_ptr() as usize % rustix::param::page_size();
        assert!(at == 16 || cfg!(not(target_env = "gnu")), "{at}");
    }
    let beside = std::thread::spawn(std::thread::park);
    assert!(
        !keep_little() || cfg!(not(target_env = "gnu")),
        "beside another thread it does not"
    );
    beside.thread().unpark();
    beside.join().expect("the other thread ends");
}
