//! The flags of `isotherm run` for Java programs on a heap with colours, beside those in `cli.rs`.

use std::path::PathBuf;

use clap::Args;

/// Whether a run by a plan has a Java heap with colours.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JavaHeapChoice {
    /// Run a Java program on a heap with colours, where the objects of each site are stored as the plan says (runs by a plan): the virtual
    /// machine that `make java-heap` builds takes the place of `java`, the program (docs/java-heap.md)
    #[arg(long, requires = "plan")]
    pub java: bool,
    /// With --java: the folder of that virtual machine's JDK [default: that of the program, if it is `java` of such a JDK; else lib/isotherm/jdk
    /// where Isotherm is installed, and build/java/jdk of the clone that it was built in]
    #[arg(long, value_name = "DIRECTORY", requires = "java")]
    pub java_home: Option<PathBuf>,
}
