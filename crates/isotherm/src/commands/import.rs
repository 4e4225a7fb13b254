//! `isotherm import` makes a profile of a recording of MemProf, DAMON or damo, which the readers of `isotherm_trace` have converted. This
//! file names its sites: code addresses by the debugging information of `--program`, and call stacks by the sites of a program that
//! `isotherm-cc` built, so that a plan of the profile can guide that program.
//!
//! The recording has counts for each allocation site or memory region; only `memprof-raw` has sites by code addresses. A site whose call
//! stack also exists in the program gets its site id there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use isotherm_model::profile::{Ending, Profile};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::Bytes;
use isotherm_model::words::{counted, percent, share};
use isotherm_symbols::named_sites::{NamedSite, NamedSites};
use isotherm_symbols::resolver::{SourceCall, Symbols, build_id};

use crate::cli::ImportArgs;
use crate::input::{self, Input};
use isotherm_console::Console;
use isotherm_console::shell_quoting;

/// Reads the recording, names its sites, and writes the profile.
///
/// # Errors
/// The file cannot be read or has no sites, its code addresses need a program that is not given, a given program is not
/// the recorded one, or the output cannot be written.
pub(crate) fn run(args: &ImportArgs, console: Console) -> Result<()> {
    super::keep_inputs([&args.input], &args.output, "--output")?;
    let shown = args.input.display();
    let Input::Profile(profile) = input::open(&args.input, &args.reading, console)? else {
        bail!(
            "{shown}: has single accesses and no allocation sites, so no profile can be made from it; \
             `isotherm simulate {}` replays it",
            shell_quoting::file(&args.input)
        );
    };
    if args.input.is_dir() {
        bail!("{shown}: is a profile of Isotherm already");
    }
    let progress = console.progress("naming the sites");
    let sites = named_by_old_id(args, &profile)?;
    progress.finish_and_clear();
    let mut profile = isotherm_pipeline::regroup(*profile, &sites);
    let target = args.sites.as_ref().or(args.program.first());
    // Such a file has no exit status; one that could be read to its end counts as that of a program that succeeded.
    profile.ending = Ending::Exited(0);
    profile.meta.command = target
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    super::write_profile(&args.output, &profile, args.force, console)?;
    announce(args, &profile, console);
    Ok(())
}

/// Each site with its id and frames in the program that the plan is for, by its id in the recording. Empty if the recording names all.
fn named_by_old_id(args: &ImportArgs, profile: &Profile) -> Result<BTreeMap<SiteId, Site>> {
    let shown = args.input.display();
    // Frames without a function are addresses in modules, known by their build-ids.
    let frames = profile.sites.iter().flat_map(|site| site.frames.iter());
    let unnamed = frames.filter(|frame| frame.function.is_none());
    let modules: BTreeSet<&str> = unnamed
        .filter_map(|frame| frame.build_id.as_deref())
        .collect();
    if modules.is_empty() {
        if let Some(program) = args.program.first() {
            bail!(
                "{shown}: has no code addresses of its sites, so {} cannot name them; leave out \
                 --program, or import the file that the program itself wrote (memprof.profraw)",
                program.display()
            );
        }
        return Ok(BTreeMap::new());
    }
    if args.program.is_empty() {
        bail!("{shown}: has only code addresses; name the program that wrote it with --program");
    }
    let mut code = RecordedCode::default();
    for program in &args.program {
        let Some(id) = build_id(program).filter(|id| modules.contains(id.as_str())) else {
            let built =
                build_id(program).unwrap_or_else(|| "none; link with -Wl,--build-id".to_owned());
            bail!(
                "{}: is not the program that {shown} recorded; its build-id is {built}, those recorded are {}",
                program.display(),
                modules.into_iter().collect::<Vec<_>>().join(", ")
            );
        };
        code.read(program, id, profile);
    }
    let targets = args
        .sites
        .as_ref()
        .map_or(&args.program[..], std::slice::from_ref);
    let targets = targets.iter().map(|program| NamedSites::read(program));
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    if let Some(program) = args
        .sites
        .as_ref()
        .filter(|_| targets.iter().all(NamedSites::is_empty))
    {
        bail!(
            "{}: has no sites; compile it with isotherm-cc",
            program.display()
        );
    }
    let site = |site: &Site| (site.id, code.named(site, &targets));
    Ok(profile.sites.iter().map(site).collect())
}

/// The source positions of the recorded code addresses, from the debugging information of the given programs.
#[derive(Default)]
struct RecordedCode {
    symbols: Symbols,
    /// By build-id.
    modules: BTreeMap<String, Module>,
}

/// A program or shared library.
struct Module {
    path: PathBuf,
    /// The calls at each recorded offset, with inlined ones, innermost first.
    calls: BTreeMap<u64, Vec<SourceCall>>,
}

impl RecordedCode {
    /// Looks up all recorded addresses of the module with this build-id.
    fn read(&mut self, path: &Path, id: String, profile: &Profile) {
        let frames = profile.sites.iter().flat_map(|site| site.frames.iter());
        let of_module = frames.filter(|frame| frame.build_id.as_deref() == Some(&id));
        let offsets: BTreeSet<u64> = of_module.map(|frame| frame.offset).collect();
        let offsets: Vec<u64> = offsets.into_iter().collect();
        let calls = self.symbols.source_calls(path, &offsets);
        let module = Module {
            path: path.to_owned(),
            calls: offsets.into_iter().zip(calls).collect(),
        };
        self.modules.insert(id, module);
    }

    /// The matching site of a target program; without a match the recorded site, with source positions for frames in given programs.
    fn named(&self, site: &Site, targets: &[NamedSites]) -> Site {
        let mut calls = Vec::new();
        let mut frames = Vec::new();
        for frame in site.frames.iter() {
            let module = frame
                .build_id
                .as_deref()
                .and_then(|id| self.modules.get(id));
            let known = module.and_then(|module| Some((module, module.calls.get(&frame.offset)?)));
            let Some((module, known)) = known else {
                continue;
            };
            let known = known.iter().filter(|call| !is_allocator(call));
            calls.extend(known.clone().cloned());
            frames.extend(known.map(|call| Frame {
                module: module.path.display().to_string().into(),
                function: Some(call.function.clone()),
                file: Some(call.file.clone()).filter(|file| !file.is_empty()),
                line: call.line,
                ..frame.clone()
            }));
        }
        let found = targets.iter().find_map(|target| target.find(&calls));
        match found {
            Some(NamedSite { id, frames }) => Site {
                frames: frames.into(),
                ..Site::new(id, SiteKind::Described)
            },
            None if frames.is_empty() => with_modules(site),
            None => Site {
                frames: frames.into(),
                ..site.clone()
            },
        }
    }
}

/// True for `malloc` and `operator new` of MemProf's runtime, which is linked into the program.
fn is_allocator(call: &SourceCall) -> bool {
    let names = ["___interceptor_", "__interceptor_", "operator new"];
    call.file.is_empty() && names.iter().any(|name| call.function.starts_with(name))
}

/// A site none of whose code is in a given program: the build-id stands in for the name of each module.
fn with_modules(site: &Site) -> Site {
    let mut site = site.clone();
    for frame in Arc::make_mut(&mut site.frames) {
        frame.module = frame
            .build_id
            .as_deref()
            .map_or_else(Arc::default, |id| format!("build-id {id}").into());
    }
    site
}

/// Prints the number of sites and accesses, the share of them that a guided run can place, and the next command.
fn announce(args: &ImportArgs, profile: &Profile, console: Console) {
    let unit = profile.counted();
    let accesses = profile.accesses_by_site();
    let of = |site: &Site| accesses.get(&site.id).map_or(0, |found| found.0);
    let all: u64 = profile.placeable_sites().map(of).sum();
    let shown = args.output.display();
    console.info(&format!(
        "imported {}, {} on them, to {shown}",
        counted(profile.placeable_sites().count(), "site"),
        unit.counted(all)
    ));
    let described = profile
        .sites
        .iter()
        .filter(|site| site.kind == SiteKind::Described);
    let (mut count, mut placed, mut bytes) = (0, 0_u64, Bytes::ZERO);
    for site in described {
        count += 1;
        placed += of(site);
        bytes += site.peak_rss;
    }
    let all_bytes: Bytes = profile.placeable_sites().map(|site| site.peak_rss).sum();
    if count == 0 {
        let remedy = match args.program.is_empty() {
            false => "--sites names such a program, built from the same sources",
            true => {
                "sites can be matched in the file that a program with MemProf's instrumentation itself writes (memprof.profraw)"
            }
        };
        console.warn(&format!(
            "none of its sites is known to a program that isotherm-cc built, so a plan of it guides no run; {remedy}"
        ));
    } else {
        console.info(&format!(
            "{count} of them, with {} of the {} and {} of the bytes, are sites of the program; a guided run \
             leaves the others to the plan's default tier",
            percent(share(placed, all)),
            unit.noun(),
            percent(share(bytes.0, all_bytes.0))
        ));
    }
    let written = shell_quoting::file(&args.output);
    console.next(&format!("isotherm plan {written} --fast 25%"));
}
