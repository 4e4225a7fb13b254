//! The kernel's lists of processors and nodes.

use isotherm_topology::cpu_list;

pub(crate) fn check(data: &[u8]) -> bool {
    let Some(numbers) = str::from_utf8(data).ok().and_then(cpu_list::parse) else {
        return false;
    };
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    assert_eq!(
        cpu_list::parse(&words.join(",")),
        Some(numbers),
        "printed and read again"
    );
    true
}
