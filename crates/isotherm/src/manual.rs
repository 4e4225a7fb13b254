//! `MANUAL` has each command's exit statuses, files and examples for man pages, from `manual.toml`; `documented` adds them to the help.

use clap::Command;

use isotherm_console::shell_quoting::SOCKET;

/// A term and its meaning: an example and its effect, a file and its contents, an exit status and its cause.
type Entry = (&'static str, &'static str);

/// The end of a command's help and man page.
pub(crate) struct Manual {
    /// The command; empty for `isotherm` itself.
    command: &'static str,
    examples: &'static [Entry],
    files: &'static [Entry],
    exit_status: &'static [Entry],
}

const SUCCESS: Entry = ("0", "Success");
const FAILURE: Entry = (
    "1",
    "Failure: one sentence on standard error names the fault, its place, its cause and the remedy",
);
const USAGE: Entry = ("2", "Wrong usage: an unknown flag or value");
const INTERRUPTED: Entry = (
    "128+N",
    "As a shell reports it: ended by signal N, such as an interrupt",
);
const PROGRAM: Entry = (
    "other",
    "The program's own: its exit status, or its end by the same signal. If the program succeeded and a \
     result could not be written, 1",
);
const USUAL: &[Entry] = &[SUCCESS, FAILURE, USAGE];
const UNTIL_INTERRUPTED: &[Entry] = &[SUCCESS, FAILURE, USAGE, INTERRUPTED];
const AS_THE_PROGRAM: &[Entry] = &[SUCCESS, FAILURE, USAGE, PROGRAM];
/// A process that runs already has no end of its own here.
const RECORDED: &[Entry] = &[
    ("0", "Success; with --pid also after an interrupt"),
    FAILURE,
    USAGE,
    PROGRAM,
];

const COMPARED: &[Entry] = &[
    ("0", "Success: no condition of --fail-if holds"),
    FAILURE,
    USAGE,
    ("3", "A condition of --fail-if holds"),
];

const PROFILE: Entry = (
    "app.iso",
    "A profile: a directory of Parquet tables (docs/formats.md), readable at every moment of the recording",
);
const PLAN: Entry = (
    "app.plan",
    "A plan: text, one line a site, to be read and edited",
);
const TIERS: Entry = (
    "tiers.toml",
    "Tiers of a machine, written by `isotherm tiers` and read by --tiers",
);
const SESSION: Entry = (
    "/dev/shm/isotherm-*",
    "Session files of running programs, removed at the end; in isotherm-machines-UID the machines that runs share, which stay",
);
const SOCKET_FILE: Entry = (SOCKET, "The daemon's socket");
const DAEMON_FILE: Entry = ("/etc/isotherm/daemon.toml", "The daemon's configuration");
const NO_FILES: &[Entry] = &[("none", "Only files that are named on the command line")];

/// Every command, in the order of the flag table; `isotherm` itself first.
pub(crate) const MANUAL: [Manual; 23] = [
    Manual {
        command: "",
        examples: &[
            ("isotherm record -o app.iso -- ./app", "Profile a program"),
            (
                "isotherm plan app.iso --fast 4GiB -o app.plan",
                "Choose a tier for each site",
            ),
            (
                "isotherm run --plan app.plan -- ./app",
                "Run it by this plan",
            ),
        ],
        files: &[PROFILE, PLAN, TIERS, DAEMON_FILE, SOCKET_FILE],
        exit_status: AS_THE_PROGRAM,
    },
    Manual {
        command: "doctor",
        examples: &[
            (
                "isotherm doctor",
                "Which features work, and what the others need",
            ),
            ("isotherm doctor --json", "The same for a program"),
        ],
        files: &[("/proc, /sys", "The state of the kernel")],
        exit_status: USUAL,
    },
    Manual {
        command: "tiers",
        examples: &[
            ("isotherm tiers", "The tiers of this machine"),
            (
                "isotherm tiers --measure -o tiers.toml",
                "Measure latency and bandwidth, and write the resulting tiers",
            ),
            (
                "isotherm tiers --tiers emulated:cxl --fast 4GiB",
                "A pair that is emulated in this machine's memory",
            ),
        ],
        files: &[TIERS],
        exit_status: UNTIL_INTERRUPTED,
    },
    Manual {
        command: "sites",
        examples: &[
            ("isotherm sites ./app", "The sites that isotherm-cc named"),
            (
                "isotherm sites --contexts ./app",
                "The calling contexts that the link distinguished",
            ),
        ],
        files: NO_FILES,
        exit_status: USUAL,
    },
    Manual {
        command: "record",
        examples: &[
            (
                "isotherm record -o app.iso -- ./app --size 4",
                "Profile a program with its arguments",
            ),
            (
                "isotherm record --force --epoch 100ms -- ./app",
                "Short epochs, into app.iso, which is replaced",
            ),
            (
                "isotherm record -o app.iso -- java -jar app.jar",
                "Profile a Java program: sites are methods, lines and classes",
            ),
            (
                "isotherm record --pid 4711 --for 30s -o service.iso",
                "Profile a process that runs already, for half a minute",
            ),
            (
                "isotherm record --isolate sites --isolate-top 8 -- ./app",
                "Then the bandwidth of the eight hottest sites, each alone in a tier in turn",
            ),
        ],
        files: &[PROFILE, SESSION],
        exit_status: RECORDED,
    },
    Manual {
        command: "import",
        examples: &[
            (
                "isotherm import memprof.profraw.1 --program ./app -o app.iso",
                "The counts of LLVM's MemProf",
            ),
            (
                "isotherm import --format damon-trace damon.txt",
                "A trace of DAMON, into app.iso",
            ),
        ],
        files: &[PROFILE],
        exit_status: USUAL,
    },
    Manual {
        command: "plan",
        examples: &[
            (
                "isotherm plan app.iso --fast 4GiB -o app.plan",
                "By the default policy, with 4 GiB of fast memory",
            ),
            (
                "isotherm plan app.iso --fast 25% --policy knapsack -o -",
                "The exact optimum, with a quarter of the footprint, to standard output",
            ),
            (
                "isotherm plan app.iso --slowdown 2%",
                "With the least fast memory with which the program is expected to be at most 2 % slower than with all data fast",
            ),
            (
                "isotherm plan app.iso --policy cold-set=5% --devices 4x16GiB -o app.plan",
                "Hot data on as few of four devices as possible, cold data with at most 5 % of the accesses apart",
            ),
            (
                "isotherm plan app.iso --policy balance --tiers emulated:limit:5GiB/s,fast-limit:10GiB/s --fast 4GiB",
                "The load of both tiers balanced, from a profile with the bandwidths of its sites",
            ),
        ],
        files: &[PROFILE, PLAN],
        exit_status: USUAL,
    },
    Manual {
        command: "run",
        examples: &[
            ("isotherm run --plan app.plan -- ./app", "Place by a plan"),
            (
                "isotherm run --plan app.plan --java -- java -jar app.jar",
                "The same for a Java program, on the heap with colours that `make java-heap` builds",
            ),
            (
                "isotherm run --java -- java -jar app.jar",
                "The same without a plan: classes are coloured while the program runs",
            ),
            (
                "isotherm run --fast 4GiB -o app.iso -- ./app",
                "Profile and place in one run, and keep the profile",
            ),
            (
                "isotherm run --optimize-after 2s --fast 25% -- ./app",
                "Move the hottest quarter of its data to fast memory once, after two seconds",
            ),
            (
                "isotherm run --policy history --unit 64KiB --tiers emulated --fast 1GiB -- ./app",
                "Move the hottest pages of each second into the fast tier of an emulated machine",
            ),
            (
                "isotherm run --policy oracle --profile app.iso --tiers emulated --fast 1GiB -- ./app",
                "The same by what a recorded run of the program did in the second to come",
            ),
            (
                "isotherm run --policy balance --tiers emulated:cxl,limit:5GiB/s,fast-limit:10GiB/s --fast 1GiB -- ./app",
                "Move pages until fast memory is as slow under its load as slow memory",
            ),
            (
                "isotherm run --remap bandwidth.toml --tiers emulated:L:1,B:1,fast-limit:1GiB/s,limit:3GiB/s --fast 4GiB -- ./app",
                "Hot data on the first of four emulated memory devices, and on more while it needs their bandwidth",
            ),
        ],
        files: &[PLAN, PROFILE, SESSION],
        exit_status: AS_THE_PROGRAM,
    },
    Manual {
        command: "explain",
        examples: &[
            (
                "isotherm explain app.plan 00000000000000ab",
                "The reason for the tier of this site",
            ),
            (
                "isotherm explain app.plan make_graph",
                "The site whose location contains this text",
            ),
        ],
        files: &[PLAN],
        exit_status: USUAL,
    },
    Manual {
        command: "colocate",
        examples: &[
            (
                "isotherm colocate db.iso web.iso --fast 4GiB",
                "Share 4 GiB among two programs, with the least sum of slow-downs",
            ),
            (
                "isotherm colocate db.iso web.iso --fast 4GiB --floor db=60",
                "The same, with at least 60 % of what fast memory can gain db",
            ),
            (
                "isotherm colocate db.iso web.iso --policy comerge -o plans",
                "By CoMerge, with the plans in an existing directory",
            ),
        ],
        files: &[PROFILE, PLAN],
        exit_status: USUAL,
    },
    Manual {
        command: "sensitivity",
        examples: &[
            (
                "isotherm sensitivity -- ./app",
                "All fast, all slow, and each of five data objects alone fast, three rounds each",
            ),
            (
                "isotherm sensitivity --profile app.iso --rounds 9 --plot app.html -- ./app",
                "More rounds, of the objects of a profile, also as a page for a browser",
            ),
            (
                "isotherm sensitivity -o app.iso -- ./app",
                "Keep the times in a profile, for `isotherm colocate`",
            ),
            (
                "isotherm sensitivity --predict --profile app.iso --tiers emulated:nvm",
                "The same predicted, without a run",
            ),
        ],
        files: &[
            PROFILE,
            ("app.html", "The page; it needs no network"),
            SESSION,
        ],
        exit_status: UNTIL_INTERRUPTED,
    },
    Manual {
        command: "merge",
        examples: &[(
            "isotherm merge -o all.iso rank.0.iso rank.1.iso",
            "The ranks of a parallel program as one profile",
        )],
        files: &[PROFILE],
        exit_status: USUAL,
    },
    Manual {
        command: "report",
        examples: &[
            ("isotherm report app.iso", "A page for a browser, app.html"),
            (
                "isotherm report --text app.iso --plan app.plan",
                "In the terminal, with the effect of a plan",
            ),
            (
                "isotherm report app.iso --export folded --stacks code",
                "Which code accesses which data, for flamegraph.pl or inferno",
            ),
        ],
        files: &[PROFILE, PLAN, ("app.html", "The page; it needs no network")],
        exit_status: USUAL,
    },
    Manual {
        command: "diff",
        examples: &[
            (
                "isotherm diff before.iso after.iso",
                "What changed, the largest change first",
            ),
            (
                "isotherm diff before.iso after.iso --fail-if 'footprint > +5%' --fail-if 'heat of any > +20%'",
                "Fail in continuous integration where the program grew, or waits longer for any of its data",
            ),
        ],
        files: &[PROFILE],
        exit_status: COMPARED,
    },
    Manual {
        command: "simulate",
        examples: &[
            (
                "isotherm simulate app.iso --fast 25%",
                "Every policy, between first touch and the oracle",
            ),
            (
                "isotherm simulate --generate zipf --sweep --plot zipf.html",
                "A generated trace at seven capacities, drawn",
            ),
            (
                "isotherm simulate trace.csv --policy history --policy payback",
                "Two policies on a trace of another tool",
            ),
        ],
        files: &[
            PROFILE,
            ("docs/traces.md", "The formats of traces that it reads"),
        ],
        exit_status: USUAL,
    },
    Manual {
        command: "fit-bandwidth",
        examples: &[
            (
                "isotherm fit-bandwidth membench.runs -o bandwidth.toml",
                "From runs of workloads/membench with 1, 2, ... devices for its hot data",
            ),
            (
                "isotherm fit-bandwidth - --tolerance 10",
                "From standard input, with up to 10 % of lost work allowed",
            ),
        ],
        files: &[(
            "bandwidth.toml",
            "A bandwidth model: bounds of bandwidth, for --bandwidth-model of `isotherm plan`",
        )],
        exit_status: USUAL,
    },
    Manual {
        command: "curve",
        examples: &[(
            "isotherm curve app.iso",
            "The share of accesses served, by the size of fast memory",
        )],
        files: &[PROFILE],
        exit_status: USUAL,
    },
    Manual {
        command: "compare",
        examples: &[
            (
                "isotherm compare app.plan -- ./app",
                "Four placements, three rounds each",
            ),
            (
                "isotherm compare --rounds 9 --check-output --json app.plan -- ./app",
                "More rounds, an error if the output differs, and JSON",
            ),
        ],
        files: &[PLAN, SESSION],
        exit_status: UNTIL_INTERRUPTED,
    },
    Manual {
        command: "daemon",
        examples: &[
            (
                "isotherm daemon --dry-run --once",
                "Print the moves on this machine without making them",
            ),
            (
                "isotherm daemon --print-config",
                "Every key of the configuration, with its default",
            ),
            (
                "isotherm daemon --replay damon.txt --fast 25%",
                "The moves that it would have made of a recording",
            ),
            (
                "isotherm daemon --restore",
                "Put back settings of the kernel that a killed daemon left changed",
            ),
        ],
        files: &[DAEMON_FILE, SOCKET_FILE],
        exit_status: USUAL,
    },
    Manual {
        command: "status",
        examples: &[
            ("isotherm status", "The state of the daemon"),
            ("isotherm status --heat", "The accesses by time and address"),
        ],
        files: &[SOCKET_FILE],
        exit_status: USUAL,
    },
    Manual {
        command: "top",
        examples: &[("isotherm top", "The same on one screen, until q")],
        files: &[SOCKET_FILE],
        exit_status: UNTIL_INTERRUPTED,
    },
    Manual {
        command: "completions",
        examples: &[(
            "isotherm completions bash",
            "A script that bash reads from share/bash-completion/completions/isotherm",
        )],
        files: NO_FILES,
        exit_status: USUAL,
    },
    Manual {
        command: "man",
        examples: &[("isotherm man share/man/man1", "One page a command")],
        files: &[("isotherm-*.1", "The pages, in the given directory")],
        exit_status: USUAL,
    },
];

impl Manual {
    /// The manual of a command; the name is empty for `isotherm` itself.
    pub(crate) fn of(command: &str) -> Option<&'static Self> {
        MANUAL.iter().find(|manual| manual.command == command)
    }

    /// Headings and entries, in the order of a man page.
    pub(crate) const fn sections(&self) -> [(&'static str, &'static [Entry]); 3] {
        [
            ("Exit status", self.exit_status),
            ("Files", self.files),
            ("Examples", self.examples),
        ]
    }

    /// The sections as text of the long help.
    fn help(&self) -> String {
        let section = |(heading, entries): (&str, &[Entry])| {
            let entry = |(word, meaning): &Entry| format!("  {word}\n          {meaning}\n");
            let entries: String = entries.iter().map(entry).collect();
            format!("{heading}:\n{entries}")
        };
        self.sections().map(section).join("\n")
    }
}

/// The command with the manual at the end of the long help of each of its commands.
pub(crate) fn documented(command: Command) -> Command {
    MANUAL
        .iter()
        .fold(command, |command, manual| match manual.command {
            "" => command.after_long_help(manual.help()),
            name => command.mut_subcommand(name, |sub| sub.after_long_help(manual.help())),
        })
}

#[cfg(test)]
mod tests {
    use super::{MANUAL, Manual, documented};
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_examples_files_and_exit_statuses_in_its_help() {
        let mut whole = documented(Cli::command());
        for command in whole.get_subcommands_mut() {
            let name = command.get_name().to_owned();
            assert!(Manual::of(&name).is_some(), "{name}");
            let help = command.render_long_help().to_string();
            for heading in ["Examples:\n  isotherm", "Files:\n", "Exit status:\n  0"] {
                assert!(help.contains(heading), "{name}: {help}");
            }
        }
        assert_eq!(whole.get_subcommands().count() + 1, MANUAL.len());
    }

    #[test]
    fn every_example_is_a_command_line_that_is_taken() {
        for manual in &MANUAL {
            for (example, _) in manual.examples {
                let words = shlex::split(example).expect("words");
                let taken = Cli::command().try_get_matches_from(words);
                assert!(taken.is_ok(), "{example}: {}", taken.unwrap_err());
                assert!(
                    example.starts_with(format!("isotherm {}", manual.command).trim_end()),
                    "{example}"
                );
            }
        }
    }
}
