//! Compares the decoder of x86-64 with a second one, `iced-x86`, on programs of this machine and on random bytes.
//!
//! Known differences, all intended: `leave` and `enter` have no operand here, because they access stack slots; `clflush` and
//! its like have none, because they load nothing; the operand of `xlat` is the base of its table. They are counted apart. `iced-x86` also
//! takes some bytes that no compiler writes, such as two REX prefixes; they occur in the data between functions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register, UsedMemory,
};
use object::{Object, ObjectSection, SectionKind};
use proptest::prelude::{any, prop};

use crate::Registers;
use crate::instruction::{Decode, Extend, Flow, Index, Operand, Step, Window};
use crate::search::search;
use crate::x86::Reader;

/// The second decoder; its tables are reused.
struct Iced {
    info: RefCell<InstructionInfoFactory>,
}

impl Default for Iced {
    fn default() -> Self {
        Self {
            info: RefCell::new(InstructionInfoFactory::new()),
        }
    }
}

impl Iced {
    fn describe(&self, instruction: &Instruction) -> Step {
        let mut info = self.info.borrow_mut();
        let info = info.info(instruction);
        let written = info
            .used_registers()
            .iter()
            .filter(|used| writes(used.access()))
            .filter_map(|used| number(used.register()))
            .fold(0, |set, register| set | 1 << register);
        Step {
            length: instruction.len(),
            operand: best(instruction, info.used_memory()),
            written,
            derivation: None,
            flow: match instruction.flow_control() {
                FlowControl::Next => Flow::Next,
                FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
                FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
                _ => Flow::Unknown,
            },
        }
    }
}

impl Decode for Iced {
    fn step(&self, code: &[u8], address: u64) -> Option<Step> {
        // The second decoder says nothing of derivations, which have tests of their own: the search takes ours.
        let ours = Reader::default().step(code, address);
        Some(Step {
            derivation: ours.and_then(|step| step.derivation),
            ..self.describe(&decode(code, address)?)
        })
    }

    fn previous(&self, window: &Window<'_>, offset: usize) -> Option<usize> {
        vote(window, offset)
    }
}

fn vote(window: &Window<'_>, offset: usize) -> Option<usize> {
    let first = offset.saturating_sub(VOTERS);
    let mut predecessor: [Option<usize>; VOTERS] = [None; VOTERS];
    for at in (first..offset).rev() {
        let address = window.start.wrapping_add(at as u64);
        let code = &window.code[at..window.code.len().min(at + LONGEST)];
        let Some(instruction) = decode(code, address) else {
            continue;
        };
        let next = at + instruction.len();
        predecessor[at - first] = match next.cmp(&offset) {
            core::cmp::Ordering::Equal => Some(at),
            core::cmp::Ordering::Less => predecessor[next - first],
            core::cmp::Ordering::Greater => None,
        };
    }
    let mut votes = [0_usize; LONGEST + 1];
    for found in predecessor.iter().flatten() {
        votes[offset - found] += 1;
    }
    let total: usize = votes.iter().sum();
    let (length, most) = votes.iter().enumerate().max_by_key(|(_, votes)| **votes)?;
    (most * 2 > total).then(|| offset - length)
}

const LONGEST: usize = 15;

const VOTERS: usize = 64;

fn decode(code: &[u8], address: u64) -> Option<Instruction> {
    let code = &code[..code.len().min(15)];
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.can_decode().then(|| decoder.decode())?;
    (!instruction.is_invalid()).then_some(instruction)
}

const fn writes(access: OpAccess) -> bool {
    !matches!(
        access,
        OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
    )
}

const fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// The operand that counts: the first that is read, else the first that is written.
fn best(instruction: &Instruction, used: &[UsedMemory]) -> Option<Operand> {
    let counts = |memory: &&UsedMemory| {
        let implied = instruction.is_stack_instruction() && memory.base() == Register::RSP;
        let local = matches!(memory.segment(), Register::FS | Register::GS);
        let touched = reads(memory.access()) || writes(memory.access());
        touched && !implied && !local
    };
    let read = used
        .iter()
        .filter(counts)
        .find(|memory| reads(memory.access()));
    read.or_else(|| used.iter().find(counts)).and_then(convert)
}

fn convert(memory: &UsedMemory) -> Option<Operand> {
    let base = match memory.base() {
        // The displacement of a relative operand is already its whole address.
        Register::None | Register::RIP | Register::EIP => None,
        register => Some(number(register)?),
    };
    let index = match memory.index() {
        Register::None => None,
        vector if vector.is_vector_register() => None,
        register => Some(Index {
            register: number(register)?,
            shift: memory.scale().trailing_zeros() as u8,
            extend: Extend::No,
            wraps: false,
        }),
    };
    let narrow = memory.base().is_gpr32() || memory.index().is_gpr32();
    Some(Operand {
        base,
        index,
        displacement: memory.displacement(),
        narrow,
    })
}

/// The register's number in `arch/x86/include/uapi/asm/perf_regs.h`.
fn number(register: Register) -> Option<u8> {
    Some(match register.full_register() {
        Register::RAX => 0,
        Register::RBX => 1,
        Register::RCX => 2,
        Register::RDX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::RSP => 7,
        Register::R8 => 16,
        Register::R9 => 17,
        Register::R10 => 18,
        Register::R11 => 19,
        Register::R12 => 20,
        Register::R13 => 21,
        Register::R14 => 22,
        Register::R15 => 23,
        _ => return None,
    })
}

/// True for instructions whose difference is intended.
fn is_meant(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Leave
            | Mnemonic::Enter
            | Mnemonic::Xlatb
            | Mnemonic::Clflush
            | Mnemonic::Clflushopt
            | Mnemonic::Clwb
    )
}

/// The parts in which two operands must agree: the address, and the registers that it needs.
fn meaning(operand: Option<Operand>) -> Option<(Option<u64>, u64)> {
    let operand = operand?;
    let mut registers = Registers::NONE;
    for number in 0..24 {
        registers.set(
            number,
            (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
    }
    let needed = (0..24).filter(|number| operand.needs_any(1 << number));
    let needed = needed.fold(0, |set, number| set | 1 << number);
    Some((operand.address(&registers), needed))
}

/// Instructions that the second decoder found, by how the first one agrees.
#[derive(Default)]
struct Agreement {
    found: u64,
    decoded: u64,
    lengths: u64,
    operands: u64,
    flows: u64,
    meant: u64,
    differences: BTreeMap<String, u64>,
}

impl Agreement {
    fn add(&mut self, instruction: &Instruction, theirs: &Step, ours: Option<&Step>) {
        self.found += 1;
        let Some(ours) = ours else {
            return self.differ("not decoded", instruction);
        };
        self.decoded += 1;
        let missing = theirs.written & !ours.written;
        assert_eq!(missing, 0, "a written register is missing: {instruction:?}");
        let lengths = ours.length == theirs.length;
        let operands = meaning(ours.operand) == meaning(theirs.operand);
        let flows = ours.flow == theirs.flow;
        let meant = !operands && is_meant(instruction.mnemonic());
        self.lengths += u64::from(lengths);
        self.operands += u64::from(operands);
        self.meant += u64::from(meant);
        self.flows += u64::from(flows);
        if !(lengths && flows && (operands || meant)) {
            self.differ("differs", instruction);
        }
    }

    fn differ(&mut self, how: &str, instruction: &Instruction) {
        let class = format!("{how}: {:?}", instruction.mnemonic());
        *self.differences.entry(class).or_default() += 1;
    }
}

/// Code of a program: pieces with the addresses of their first bytes.
fn code(program: &PathBuf) -> Vec<(u64, Vec<u8>)> {
    let data = fs::read(program).expect("a program that can be read");
    let file = object::File::parse(&*data).expect("an ELF file");
    file.sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .map(|section| {
            let code = section.data().expect("code in the file");
            (section.address(), code.to_vec())
        })
        .collect()
}

/// The C library and this test; `ISOTHERM_DECODE_PROGRAMS` names more of them, separated by colons.
fn programs() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").expect("mappings of this process");
    let mapped = |name: &str| {
        let line = maps.lines().find(|line| line.contains(name))?;
        Some(PathBuf::from(&line[line.find('/')?..]))
    };
    let this = std::env::current_exe().expect("the path of this test");
    let more = std::env::var_os("ISOTHERM_DECODE_PROGRAMS").unwrap_or_default();
    mapped("/libc.so")
        .into_iter()
        .chain([this])
        .chain(std::env::split_paths(&more).filter(|path| !path.as_os_str().is_empty()))
        .collect()
}

/// Every instruction from the start of a piece on, as the second decoder finds them.
fn sweep(start: u64, code: &[u8], mut visit: impl FnMut(usize, Instruction)) {
    let mut at = 0;
    while at < code.len() {
        match decode(&code[at..], start.wrapping_add(at as u64)) {
            Some(instruction) => {
                visit(at, instruction);
                at += instruction.len();
            }
            None => at += 1,
        }
    }
}

#[test]
fn programs_are_decoded_as_by_a_second_decoder() {
    let (iced, reader) = (Iced::default(), Reader::default());
    for program in programs() {
        let mut agreement = Agreement::default();
        for (start, code) in code(&program) {
            sweep(start, &code, |at, instruction| {
                let ours = reader.step(&code[at..], instruction.ip());
                agreement.add(&instruction, &iced.describe(&instruction), ours.as_ref());
            });
        }
        let Agreement {
            found,
            decoded,
            lengths,
            operands,
            flows,
            meant,
            differences,
        } = agreement;
        println!(
            "{}: {found} instructions, {decoded} decoded; of these equal: {lengths} lengths, {operands} operands \
             ({meant} differ as meant), {flows} flows; others {differences:?}",
            program.display()
        );
        let nearly_all = |part: u64, whole: u64| whole > 0 && part * 1000 >= whole * 999;
        assert!(nearly_all(decoded, found), "decoded");
        assert!(nearly_all(lengths, decoded), "lengths");
        assert!(nearly_all(operands + meant, decoded), "operands");
        assert!(nearly_all(flows, decoded), "flows");
    }
}

/// Every how many instructions the search is compared: it decodes a hundred for each. In code that holds data the vote
/// on the instruction before depends on which junk decodes, so a few of the samples may differ.
const SEARCH_EVERY: usize = 97;

#[test]
fn a_sample_finds_the_same_access_as_with_a_second_decoder() {
    let (iced, reader) = (Iced::default(), Reader::default());
    for program in programs() {
        let (mut searched, mut equal, mut number) = (0_u64, 0_u64, 0_usize);
        for (start, code) in code(&program) {
            sweep(start, &code, |at, instruction| {
                number += 1;
                if number % SEARCH_EVERY != 0 {
                    return;
                }
                let first = at.saturating_sub(crate::BYTES_BEFORE);
                let last = code.len().min(at + crate::BYTES_AFTER);
                let window = Window {
                    code: &code[first..last],
                    start: start + first as u64,
                    ip: instruction.ip(),
                };
                let (ours, theirs) = (search(&reader, &window), search(&iced, &window));
                let order = |found: &Option<crate::NearbyAccess>| found.map(|it| it.order);
                let operand =
                    |found: Option<crate::NearbyAccess>| meaning(found.map(|it| it.operand));
                searched += 1;
                equal +=
                    u64::from(order(&ours) == order(&theirs) && operand(ours) == operand(theirs));
            });
        }
        println!("{}: {equal} of {searched} samples equal", program.display());
        assert!(searched > 0 && equal * 1000 >= searched * 995);
    }
}

/// Bytes with which an instruction may begin: prefixes, escapes to the maps of opcodes, and vector encodings.
const BEGINNINGS: [&[u8]; 23] = [
    &[],
    &[0x0f],
    &[0x0f, 0x01],
    &[0x0f, 0x38],
    &[0x0f, 0x3a],
    &[0x66],
    &[0x66, 0x0f],
    &[0xf2, 0x0f],
    &[0xf3],
    &[0xf3, 0x0f],
    &[0x48],
    &[0x67],
    &[0xc4],
    &[0xc5],
    &[0x62],
    &[0x8f],
    &[0xc4, 0xc1],
    &[0xc4, 0xe2],
    &[0xc4, 0xe3],
    &[0x62, 0xf1],
    &[0x62, 0xf2],
    &[0x8f, 0xe8],
    &[0x8f, 0xe9],
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

    #[test]
    fn random_code_is_decoded_as_by_a_second_decoder(
        beginning in prop::sample::select(&BEGINNINGS[..]),
        rest in prop::collection::vec(any::<u8>(), 15),
    ) {
        let code = [beginning, &rest].concat();
        let (iced, reader) = (Iced::default(), Reader::default());
        if let (Some(theirs), Some(ours)) = (iced.step(&code, 0x1000), reader.step(&code, 0x1000)) {
            proptest::prop_assert_eq!(theirs.length, ours.length);
            proptest::prop_assert_eq!(theirs.written & !ours.written, 0);
            if matches!(code[0], 0xc4 | 0xc5 | 0x62 | 0x8f) {
                proptest::prop_assert_eq!(meaning(theirs.operand), meaning(ours.operand));
            }
        }
    }
}
