//! Tests that nothing on the way from code to a data address allocates: the runtime decodes inside signal handlers.

use allocation_counter::measure;
use isotherm_decode::{Architecture, BYTES_AFTER, BYTES_BEFORE, Registers, Window, access};
use proptest::prelude::{any, prop};

/// Every register known, so that no address is given up early.
fn registers() -> Registers {
    let mut registers = Registers::NONE;
    for number in 0..33 {
        registers.set(number, u64::from(number) << 32);
    }
    registers
}

/// Number of allocations while a sample at `ip` is decoded for both architectures.
fn allocations(code: &[u8], start: u64, ip: u64) -> u64 {
    let registers = registers();
    let counted = measure(|| {
        for architecture in [Architecture::X86, Architecture::Arm64] {
            let window = Window { code, start, ip };
            let found = access(architecture, &window);
            std::hint::black_box(found.and_then(|found| found.operand.address(&registers)));
        }
    });
    counted.count_total
}

#[test]
fn the_counter_sees_an_allocation() {
    let counted = measure(|| drop(std::hint::black_box(Box::new(7))));
    assert_eq!(counted.count_total, 1);
}

#[test]
fn samples_in_a_real_program_are_decoded_without_allocation() {
    let path = std::env::current_exe().expect("the path of this test");
    let program = std::fs::read(path).expect("a program that can be read");
    let window = BYTES_BEFORE + BYTES_AFTER;
    // Sections of code and of data: any bytes will do.
    for at in (0..program.len() - window).step_by(1009) {
        let ip = (at + BYTES_BEFORE) as u64;
        let code = &program[at..at + window];
        assert_eq!(allocations(code, at as u64, ip), 0, "at {at:#x}");
    }
}

proptest::proptest! {
    #[test]
    fn any_code_is_decoded_without_allocation(
        start in any::<u64>(),
        at in 0u64..100,
        code in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        proptest::prop_assert_eq!(allocations(&code, start, start.wrapping_add(at)), 0);
    }
}
