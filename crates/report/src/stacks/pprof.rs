//! Encodes stacks in the file format of `pprof`: a message of Protocol Buffers, which `go tool pprof` reads uncompressed, too.
//!
//! The messages are those of `profile.proto` of github.com/google/pprof, as far as they are used here.

use std::collections::HashMap;

use prost::Message;

use super::{StackFrame, StackWeight, WeightedStack};

/// A kind of value, both words by their numbers in the table of strings.
#[derive(Clone, PartialEq, Eq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

/// A stack, innermost call first, with a value of each kind.
#[derive(Clone, PartialEq, Eq, Message)]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

/// A place in a function.
#[derive(Clone, PartialEq, Eq, Message)]
struct PprofLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

/// A call.
#[derive(Clone, PartialEq, Eq, Message)]
struct PprofLocation {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<PprofLine>,
}

/// A function, its texts by their numbers.
#[derive(Clone, PartialEq, Eq, Message)]
struct PprofFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The whole file.
#[derive(Clone, PartialEq, Eq, Message)]
struct PprofFile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
}

/// Numbers of what was entered, from 0, in the order of its entry.
#[derive(Default)]
struct Numbers<T>(HashMap<T, u64>);

impl<T: std::hash::Hash + Eq + Clone> Numbers<T> {
    /// The number of a value, and whether it is new.
    fn of(&mut self, value: &T) -> (u64, bool) {
        let next = self.0.len() as u64;
        match self.0.get(value) {
            Some(known) => (*known, false),
            None => {
                self.0.insert(value.clone(), next);
                (next, true)
            }
        }
    }
}

/// The file, made call by call.
#[derive(Default)]
struct PprofWriter {
    file: PprofFile,
    texts: Numbers<String>,
    locations: Numbers<(String, Option<String>, Option<u32>)>,
    functions: Numbers<(String, Option<String>)>,
}

impl PprofWriter {
    fn text(&mut self, text: &str) -> i64 {
        let (number, is_new) = self.texts.of(&text.to_owned());
        if is_new {
            self.file.string_table.push(text.to_owned());
        }
        number as i64
    }

    fn location(&mut self, frame: &StackFrame) -> u64 {
        let place = (frame.name.clone(), frame.file.clone(), frame.line);
        let (number, is_new) = self.locations.of(&place);
        // Ids are not 0.
        let id = number + 1;
        if is_new {
            let function_id = self.function(frame);
            let line = frame.line.map_or(0, i64::from);
            self.file.location.push(PprofLocation {
                id,
                line: vec![PprofLine { function_id, line }],
            });
        }
        id
    }

    fn function(&mut self, frame: &StackFrame) -> u64 {
        let (number, is_new) = self.functions.of(&(frame.name.clone(), frame.file.clone()));
        let id = number + 1;
        if is_new {
            let name = self.text(&frame.name);
            let filename = self.text(frame.file.as_deref().unwrap_or_default());
            self.file.function.push(PprofFunction {
                id,
                name,
                system_name: name,
                filename,
            });
        }
        id
    }
}

/// A file of stacks by these kinds of values, each with its word and unit, for a run of `duration_ns`.
#[must_use]
pub fn pprof(
    stacks: &[WeightedStack],
    kinds: &[(&str, &str, StackWeight)],
    duration_ns: u64,
) -> Vec<u8> {
    let mut writer = PprofWriter::default();
    // The first text is empty.
    writer.text("");
    for (word, unit, _) in kinds {
        let (kind, unit) = (writer.text(word), writer.text(unit));
        writer.file.sample_type.push(ValueType { kind, unit });
    }
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    for stack in stacks {
        let innermost_first = stack.frames.iter().rev();
        let location_id = innermost_first.map(|frame| writer.location(frame));
        let location_id = location_id.collect();
        let value = kinds.iter();
        let value = value.map(|(_, _, weight)| signed(stack.weight(*weight)));
        let value = value.collect();
        writer.file.sample.push(PprofSample { location_id, value });
    }
    writer.file.duration_nanos = signed(duration_ns);
    writer.file.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::{PprofFile, pprof};
    use crate::stacks::{StackFrame, StackWeight, WeightedStack};
    use prost::Message;

    #[test]
    fn a_file_names_each_function_once_and_has_each_stack_with_its_values() {
        let frame = |name: &str, line| StackFrame {
            name: name.to_owned(),
            file: Some("/src/a.c".to_owned()),
            line: Some(line),
        };
        let stack = |line, heat| WeightedStack {
            frames: vec![frame("main", 3), frame("load", line)],
            heat,
            bytes: 4096,
        };
        let kinds = [
            ("samples", "count", StackWeight::Heat),
            ("peak_rss", "bytes", StackWeight::Bytes),
        ];
        let bytes = pprof(&[stack(7, 5), stack(9, u64::MAX)], &kinds, 1000);
        let file = PprofFile::decode(&*bytes).expect("a message");
        assert_eq!(file.string_table[0], "");
        assert_eq!((file.function.len(), file.location.len()), (2, 3));
        assert_eq!(file.sample[0].value, [5, 4096]);
        assert_eq!(file.sample[1].value, [i64::MAX, 4096]);
        let inner = file.sample[0].location_id[0];
        let location = file
            .location
            .iter()
            .find(|it| it.id == inner)
            .expect("is there");
        let function = location.line[0].function_id;
        let function = file
            .function
            .iter()
            .find(|it| it.id == function)
            .expect("is there");
        assert_eq!(file.string_table[function.name as usize], "load");
        assert_eq!(location.line[0].line, 7);
        let unit = file.sample_type[1].unit as usize;
        assert_eq!(file.string_table[unit], "bytes");
        assert_eq!(file.duration_nanos, 1000);
    }
}
