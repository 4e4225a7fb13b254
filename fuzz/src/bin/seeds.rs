//! Lists the targets (`--list`), or writes the seeds of the binary formats into the corpus: needed
//! again when a layout has changed and its old seeds are refused.

use std::io::Write as _;

use isotherm_fuzz::TARGETS;
use isotherm_fuzz::campaign::corpus_directory;

fn main() -> std::io::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("--list") {
        for target in TARGETS {
            writeln!(std::io::stdout(), "{}", target.name)?;
        }
        return Ok(());
    }
    for target in TARGETS {
        let directory = corpus_directory(target);
        std::fs::create_dir_all(&directory)?;
        for (name, bytes) in (target.seeds)() {
            std::fs::write(directory.join(format!("seed-{name}")), bytes)?;
        }
    }
    Ok(())
}
