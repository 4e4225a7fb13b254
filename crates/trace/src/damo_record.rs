//! Reads records of `damo`, the tool for DAMON, into a profile: JSON, compressed with zlib (`damon.data`, the output of `damo record`) or
//! plain (`json` of `damo record --output_type`).
//!
//! ```text
//! [ { "target_id": 1, "intervals": {...},
//!     "snapshots": [ { "start_time": "539809434100", "end_time": "539914032967",
//!                      "regions": [ { "start": "94,827,419,009,024", "end": "94,827,423,150,080",
//!                                     "nr_accesses": { "samples": 5, "percent": null } } ] } ] } ]
//! ```
//!
//! Times are nanoseconds. Numbers are JSON numbers, or text with commas between thousands. The file
//! is read as a stream: one snapshot is in memory at a time.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{BufRead, ErrorKind, Read};
use std::marker::PhantomData;

use flate2::bufread::ZlibDecoder;
use isotherm_model::profile::Profile;
use isotherm_model::units::Nanos;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::error::Category;

use crate::damon::{Gatherer, Region, Snapshot};
use crate::damon_trace::REGIONS;
use crate::error::{Error, Fault, Place};
use crate::grain::Grain;

const FORMAT: &str = "a record of `damo record` (JSON, plain or compressed with zlib)";
/// Most bytes between two regions: without a limit a small compressed file could hold one name that
/// fills the memory.
const BETWEEN_REGIONS: u64 = 1 << 24;

/// The profile of a record.
pub(crate) fn read(mut source: impl BufRead, file: &str, grain: Grain) -> Result<Profile, Error> {
    let head = source.fill_buf().map_err(|e| Error::read(file, e))?;
    let compressed = is_zlib(head);
    let state = State {
        gatherer: RefCell::new(Gatherer::new(grain)),
        fault: RefCell::new(None),
        unmarked: Cell::new(0),
        record: Cell::new(0),
    };
    let inner: Box<dyn Read + '_> = match compressed {
        true => Box::new(ZlibDecoder::new(source)),
        false => Box::new(source),
    };
    let metered = Metered {
        inner,
        state: &state,
    };
    let mut json = serde_json::Deserializer::from_reader(std::io::BufReader::new(metered));
    let next_record = |()| {
        state.record.update(|number| number + 1);
        Ok(())
    };
    state
        .list("a list of records", Part(Record(&state)), next_record)
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| located(error, &state, file))?;
    drop(json);
    let gatherer = state.gatherer.into_inner();
    gatherer
        .finish()
        .map_err(|fault| fault.at(file, Place::Whole))
}

/// The two magic bytes of zlib: method 8 and a check that makes both a multiple of 31.
pub(crate) fn is_zlib(head: &[u8]) -> bool {
    let Some(&[method, flags]) = head.first_chunk() else {
        return false;
    };
    method & 0x0f == 8 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
}

/// The error, with the line of the (unpacked) text.
fn located(error: serde_json::Error, state: &State, file: &str) -> Error {
    let place = Place::Line(error.line().max(1) as u64);
    if let Some(fault) = state.fault.take() {
        return fault.at(file, place);
    }
    match (error.classify(), error.io_error_kind()) {
        (
            Category::Io,
            Some(ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData),
        ) => Fault::new("the compressed data is damaged or cut off", FORMAT).at(file, place),
        (Category::Io, _) => Error::read(file, error.into()),
        (Category::Eof, _) => Fault::new("it ends in the middle", FORMAT).at(file, place),
        // The library's message ends with the line, which is already printed.
        _ => {
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            Fault::new(text.to_owned(), FORMAT).at(file, place)
        }
    }
}

/// The state shared by the readers of the parts.
struct State {
    gatherer: RefCell<Gatherer>,
    /// The fault, if the file broke one of our own rules.
    fault: RefCell<Option<Fault>>,
    /// Bytes since the last region.
    unmarked: Cell<u64>,
    /// Number of the record that is read. Two records of one target (several schemes) start again at the same time, so it and not the
    /// target distinguishes them.
    record: Cell<u64>,
}

impl State {
    /// Keeps a fault, and stops the library.
    fn refuse<E: serde::de::Error>(&self, fault: Fault) -> E {
        let text = fault.found.clone();
        self.fault.replace(Some(fault));
        E::custom(text)
    }

    /// A list whose elements are read by `seed` and passed to `add` one by one. `expecting` names it in errors.
    const fn list<S, F>(&self, expecting: &'static str, seed: S, add: F) -> Part<List<'_, S, F>> {
        Part(List {
            state: self,
            expecting,
            seed,
            add,
        })
    }

    /// Adds a region to those of its snapshot.
    fn add_region(&self, regions: &mut Vec<Region>, raw: &RawRegion) -> Result<(), Fault> {
        self.unmarked.set(0);
        let region = Region::new(raw.start.0, raw.end.0, raw.nr_accesses.samples.0)?;
        region.behind(regions.last())?;
        regions.push(region);
        if regions.len() as u64 > REGIONS {
            let found = format!("a snapshot has more than {REGIONS} regions");
            return Err(Fault::new(found, FORMAT));
        }
        Ok(())
    }
}

/// A reader that counts the bytes between regions.
struct Metered<'a> {
    inner: Box<dyn Read + 'a>,
    state: &'a State,
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let unmarked = &self.state.unmarked;
        if unmarked.get() > BETWEEN_REGIONS {
            let found = format!("{BETWEEN_REGIONS} bytes hold no region");
            self.state.fault.replace(Some(Fault::new(found, FORMAT)));
            return Err(std::io::Error::other("no region"));
        }
        let read = self.inner.read(buffer)?;
        unmarked.set(unmarked.get() + read as u64);
        Ok(read)
    }
}

/// A part of the file that is read by a visitor with a state.
#[derive(Clone, Copy)]
struct Part<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Part<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

/// A list, as [`State::list`] makes it.
struct List<'a, S, F> {
    state: &'a State,
    expecting: &'static str,
    seed: S,
    add: F,
}

impl<'de, S, F> Visitor<'de> for List<'_, S, F>
where
    S: DeserializeSeed<'de> + Copy,
    F: FnMut(S::Value) -> Result<(), Fault>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element_seed(self.seed)? {
            (self.add)(element).map_err(|fault| self.state.refuse(fault))?;
        }
        Ok(())
    }
}

/// One record: a target and its snapshots, which are gathered one by one.
#[derive(Clone, Copy)]
struct Record<'a>(&'a State);

impl<'de> Visitor<'de> for Record<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record with \"snapshots\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut record: A) -> Result<(), A::Error> {
        let Self(state) = self;
        let mut found = false;
        while let Some(key) = record.next_key::<String>()? {
            if key == "snapshots" {
                found = true;
                let gather = |snapshot| state.gatherer.borrow_mut().add(&snapshot);
                let one = Part(OneSnapshot(state));
                record.next_value_seed(state.list("a list of snapshots", one, gather))?;
            } else {
                record.next_value::<IgnoredAny>()?;
            }
        }
        match found {
            true => Ok(()),
            false => Err(A::Error::missing_field("snapshots")),
        }
    }
}

/// One snapshot.
#[derive(Clone, Copy)]
struct OneSnapshot<'a>(&'a State);

impl<'de> Visitor<'de> for OneSnapshot<'_> {
    type Value = Snapshot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a snapshot with \"start_time\", \"end_time\" and \"regions\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Snapshot, A::Error> {
        let Self(state) = self;
        let mut start = None;
        let mut end = None;
        let mut regions = None;
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "start_time" => start = Some(fields.next_value::<Number>()?.0),
                "end_time" => end = Some(fields.next_value::<Number>()?.0),
                "regions" => {
                    let list = regions.insert(Vec::new());
                    let add = |raw: RawRegion| state.add_region(list, &raw);
                    let raw = PhantomData::<RawRegion>;
                    fields.next_value_seed(state.list("a list of regions", raw, add))?;
                }
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        let missing = A::Error::missing_field;
        Ok(Snapshot {
            target: state.record.get(),
            start: Nanos(start.ok_or_else(|| missing("start_time"))?),
            end: Nanos(end.ok_or_else(|| missing("end_time"))?),
            regions: regions.ok_or_else(|| missing("regions"))?,
        })
    }
}

/// A region as stored in the file; unused fields are skipped.
#[derive(Deserialize)]
struct RawRegion {
    start: Number,
    end: Number,
    nr_accesses: RawAccesses,
}

#[derive(Deserialize)]
struct RawAccesses {
    samples: Number,
}

/// A whole number: `94`, `"94"` or `"94,827,419"`.
struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of 64 bits, such as \"94,827,419\"")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
        let digits: String = text.chars().filter(|c| *c != ',').collect();
        let number = crate::number::decimal(&digits).map(Number);
        number.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};

    use super::{is_zlib, read};
    use crate::grain::Grain;

    const RECORD: &str = r#"[{"target_id": null, "snapshots": [
        {"start_time": "100", "end_time": 200, "regions": [
            {"start": "4,096", "end": "8,192", "nr_accesses": {"samples": 3, "percent": null}, "age": {}}
        ]}]}]"#;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn failed(bytes: &[u8]) -> String {
        read(bytes, "x", Grain::default()).unwrap_err().to_string()
    }

    #[test]
    fn plain_and_compressed_records_yield_the_same_profile() {
        let plain = read(RECORD.as_bytes(), "x", Grain::default()).unwrap();
        let bytes = packed(RECORD);
        assert!(is_zlib(&bytes));
        assert_eq!(read(&bytes[..], "x", Grain::default()).unwrap(), plain);
        assert_eq!(plain.heat[0].accesses.0, 3);
    }

    #[test]
    fn each_way_to_be_wrong_names_its_line() {
        let with = |from: &str, to: &str| failed(RECORD.replace(from, to).as_bytes());
        let turned = with("\"8,192\"", "\"1,024\"");
        assert!(
            turned.starts_with("x:4: the region 4096-1024 ends"),
            "{turned}"
        );
        assert!(with("\"8,192\"", "\"-1\"").contains("a whole number"));
        assert!(with("\"100\"", "\"300\"").contains("before it starts"));
        assert!(with("\"samples\": 3", "\"samples\": null").contains("x:3: invalid type"));
        assert!(with("snapshots", "snap").contains("missing field `snapshots`"));
        assert!(with("\"8,192\"", "99999999999999999999").contains("invalid type"));
        assert!(failed(&RECORD.as_bytes()[..150]).contains("ends in the middle"));
        assert!(failed(b"[]").contains("no snapshot"));
        assert!(failed(b"").contains("ends in the middle"));
    }

    #[test]
    fn damaged_compression_is_refused() {
        let mut bytes = packed(RECORD);
        let half = bytes.len() / 2;
        let cut = failed(&bytes[..half]);
        assert!(cut.contains("damaged or cut off"), "{cut}");
        bytes[half] ^= 0x5a;
        let changed = failed(&bytes);
        assert!(changed.starts_with("x:"), "{changed}");
    }

    #[test]
    fn a_small_file_cannot_fill_the_memory() {
        let name = "x".repeat(40 << 20);
        let bomb = packed(&format!("[{{\"{name}\": 1}}]"));
        assert!(bomb.len() < 1 << 17, "{} bytes", bomb.len());
        let error = failed(&bomb);
        assert!(error.contains("bytes hold no region"), "{error}");
    }
}
