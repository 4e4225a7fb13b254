//! `ThreadRole` is the role of a thread of a Java virtual machine (program, collector, compiler), which `of_name` derives from the name
//! that HotSpot gives it: only samples of the program's threads are attributed to sites, and those of the others are counted.

/// The work of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadRole {
    /// The program's own.
    Program,
    /// Collects garbage, or works at safepoints.
    Collector,
    /// Compiles methods.
    Compiler,
}

/// The role by the name in `comm`, which the kernel cuts to 15 bytes.
pub(super) fn of_name(name: &str) -> ThreadRole {
    const COLLECTOR: [&str; 7] = [
        "GC Thread",
        "G1 ",
        "VM Thread",
        "ParGC",
        "Shenandoah",
        "ZWorker",
        "Gang worker",
    ];
    const COMPILER: [&str; 4] = ["C1 Comp", "C2 Comp", "JVMCI", "Sweeper"];
    let begins = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
    match (begins(&COLLECTOR), begins(&COMPILER)) {
        (true, _) => ThreadRole::Collector,
        (_, true) => ThreadRole::Compiler,
        _ => ThreadRole::Program,
    }
}

#[cfg(test)]
mod tests {
    use super::{ThreadRole, of_name};

    #[test]
    fn collectors_and_compilers_are_told_from_the_program() {
        for name in ["GC Thread#0", "G1 Conc#0", "G1 Main Marker", "VM Thread"] {
            assert_eq!(of_name(name), ThreadRole::Collector, "{name}");
        }
        for name in ["C2 CompilerThre", "C1 CompilerThre"] {
            assert_eq!(of_name(name), ThreadRole::Compiler, "{name}");
        }
        for name in ["java", "main", "Thread-0", "GC", "Common-Cleaner", ""] {
            assert_eq!(of_name(name), ThreadRole::Program, "{name}");
        }
    }
}
