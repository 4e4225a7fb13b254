//! [`matched_calls`] finds the calls of a function again in a rebuilt program, by line, by variable or by order, and [`same_function`]
//! finds that function by its name and file. So a plan survives a rebuild, and profiles of two builds can be compared.
//!
//! ```text
//! former build                     this build, two lines added above      matched
//! 29:14 malloc   -> 0x1180         31:14 malloc   -> 0x11c4               by line (counted from the function's first)
//! 30:14 malloc   -> 0x1198         32:14 malloc   -> 0x11dc               by line
//!
//! former build                     this build, a line added between       matched
//! 29:14 malloc   -> 0x1180         29:14 malloc   -> 0x1180               by order: the function was edited,
//! 30:14 malloc   -> 0x1198         31:14 malloc   -> 0x11a2               and has as many calls of malloc as before
//! ```
//!
//! A call whose result goes to another variable is another call. If lines do not agree, variables
//! do not identify the call and the numbers of calls differ, no call is matched: any choice would
//! be a guess.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_model::calls::{Call, Callee, FunctionCalls, MatchedBy};

/// The calls that may correspond to a former call. Several if the compiler generated several from
/// one in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCall {
    /// Their return addresses.
    pub offsets: Vec<u64>,
    /// The method of the match.
    pub by: MatchedBy,
}

/// The calls at one place in the source; several are in the order of the machine code.
#[derive(Debug)]
struct Place<'a> {
    line: Option<u32>,
    column: Option<u32>,
    calls: Vec<&'a Call>,
}

/// The function of this name in the file with the path most similar to the former one; `None` if two are equally similar.
#[must_use]
pub fn same_function<'a>(
    former: &FunctionCalls,
    now: &'a [FunctionCalls],
) -> Option<&'a FunctionCalls> {
    let likeness = |function: &FunctionCalls| match (&former.file, &function.file) {
        (Some(former), Some(now)) => common_end(former, now),
        _ => usize::from(former.file.is_none() && function.file.is_none()),
    };
    let named = now
        .iter()
        .filter(|function| function.function == former.function && likeness(function) > 0);
    let mut by_likeness: Vec<_> = named
        .map(|function| (likeness(function), function))
        .collect();
    by_likeness.sort_by_key(|(likeness, _)| std::cmp::Reverse(*likeness));
    match by_likeness.as_slice() {
        [(best, _), (next, _), ..] if best == next => None,
        [(_, function), ..] => Some(function),
        [] => None,
    }
}

/// Parts that two paths have in common at their ends.
fn common_end(a: &str, b: &str) -> usize {
    let parts = |path| Path::new(path).components().rev();
    parts(a).zip(parts(b)).take_while(|(a, b)| a == b).count()
}

/// The calls of `now` that match those of `former`, by the former return addresses. A former call
/// that is absent from the map no longer exists, or is ambiguous.
#[must_use]
pub fn matched_calls(former: &FunctionCalls, now: &FunctionCalls) -> BTreeMap<u64, MatchedCall> {
    by_line(former, now).unwrap_or_else(|| {
        let mut found = by_variable(former, now);
        by_order(former, now, &mut found);
        the_only_call(former, now, &mut found);
        found
    })
}

/// Matches if every former call still has its line, counted from the beginning of the function.
/// Otherwise the function was edited, and a call at the former line of another call would be
/// mistaken for it.
fn by_line(former: &FunctionCalls, now: &FunctionCalls) -> Option<BTreeMap<u64, MatchedCall>> {
    let begins = |function: &FunctionCalls| function.first_line.map_or(0, i64::from);
    let moved = match former.first_line.and(now.first_line) {
        Some(_) => begins(now) - begins(former),
        None => 0,
    };
    let mut found = BTreeMap::new();
    for place in places(&former.calls) {
        let line = i64::from(place.line?) + moved;
        let same_column = |call: &&Call| {
            call.column
                .zip(place.column)
                .is_none_or(|(now, former)| now == former)
        };
        let here: Vec<&Call> = now
            .calls
            .iter()
            .filter(|call| call.line.is_some_and(|found| i64::from(found) == line))
            .filter(same_column)
            .filter(|call| may_be(place.calls[0], call))
            .collect();
        let callee = &place.calls[0].callee;
        let same: Vec<&Call> = here
            .iter()
            .copied()
            .filter(|call| call.callee == *callee)
            .collect();
        // A function that ends in a jump leaves no frame, so the callee in the code need not be the
        // function that was reached.
        let here = if same.is_empty() { here } else { same };
        if here.is_empty() {
            return None;
        }
        pair(&place.calls, &here, MatchedBy::Line, &mut found);
    }
    Some(found)
}

/// True if both calls may assign to the same variable, as far as is known.
fn may_be(former: &Call, now: &Call) -> bool {
    let variables = former.variable.as_ref().zip(now.variable.as_ref());
    variables.is_none_or(|(former, now)| former == now)
}

/// Matches the calls whose variable and callee occur once before and once now.
fn by_variable(former: &FunctionCalls, now: &FunctionCalls) -> BTreeMap<u64, MatchedCall> {
    let mut found = BTreeMap::new();
    for call in former.calls.iter().filter(|call| call.variable.is_some()) {
        let same = |other: &&Call| other.variable == call.variable && other.callee == call.callee;
        let before: Vec<Call> = former.calls.iter().filter(same).cloned().collect();
        let after: Vec<Call> = now.calls.iter().filter(same).cloned().collect();
        if let ([before], [after]) = (places(&before).as_slice(), places(&after).as_slice()) {
            pair(&before.calls, &after.calls, MatchedBy::Variable, &mut found);
        }
    }
    found
}

/// Matches the other calls of each function by their order in the source, if their number is
/// unchanged.
fn by_order(former: &FunctionCalls, now: &FunctionCalls, found: &mut BTreeMap<u64, MatchedCall>) {
    let taken: Vec<u64> = found.values().flat_map(|m| m.offsets.clone()).collect();
    let mut callees: Vec<&Callee> = former.calls.iter().map(|call| &call.callee).collect();
    callees.sort_unstable();
    callees.dedup();
    for callee in callees.into_iter().filter(|c| **c != Callee::Unknown) {
        let of = |function: &FunctionCalls| -> Vec<Call> {
            let calls = function.calls.iter().filter(|call| call.callee == *callee);
            calls.cloned().collect()
        };
        let (mut before, mut after) = (of(former), of(now));
        before.retain(|call| !found.contains_key(&call.offset));
        after.retain(|call| !taken.contains(&call.offset));
        let (before, after) = (places(&before), places(&after));
        if before.len() != after.len() {
            continue;
        }
        for (before, after) in before.iter().zip(&after) {
            if may_be(before.calls[0], after.calls[0]) {
                pair(&before.calls, &after.calls, MatchedBy::Order, found);
            }
        }
    }
}

/// Matches the only call of a function with its former only call, regardless of their callees:
/// `_start` calls `__libc_start_main`, which has another name within the C library. Calls of
/// allocation functions are excluded: the former one may have been removed.
fn the_only_call(
    former: &FunctionCalls,
    now: &FunctionCalls,
    found: &mut BTreeMap<u64, MatchedCall>,
) {
    let allocates = |function: &FunctionCalls| {
        let mut calls = function.calls.iter();
        calls.any(|call| call.callee == Callee::Allocation)
    };
    if !found.is_empty() || allocates(former) || allocates(now) {
        return;
    }
    if let ([before], [after]) = (
        places(&former.calls).as_slice(),
        places(&now.calls).as_slice(),
    ) {
        pair(&before.calls, &after.calls, MatchedBy::Line, found);
    }
}

/// Pairs the calls of one place: one by one if their number is unchanged; otherwise each may match
/// each.
fn pair(former: &[&Call], now: &[&Call], by: MatchedBy, found: &mut BTreeMap<u64, MatchedCall>) {
    for (position, call) in former.iter().enumerate() {
        let offsets = match former.len() == now.len() {
            true => vec![now[position].offset],
            false => now.iter().map(|call| call.offset).collect(),
        };
        found.insert(call.offset, MatchedCall { offsets, by });
    }
}

/// The places of calls in the order of the source; without lines, each call is its own place, in
/// the order of the machine code.
fn places(calls: &[Call]) -> Vec<Place<'_>> {
    let mut sorted: Vec<&Call> = calls.iter().collect();
    sorted.sort_by_key(|call| (call.line, call.column, call.offset));
    sorted.dedup_by_key(|call| call.offset);
    let mut places: Vec<Place<'_>> = Vec::new();
    for call in sorted {
        match places.last_mut() {
            Some(last)
                if call.line.is_some()
                    && (last.line, last.column) == (call.line, call.column)
                    && last.calls[0].callee == call.callee =>
            {
                last.calls.push(call);
            }
            _ => places.push(Place {
                line: call.line,
                column: call.column,
                calls: vec![call],
            }),
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{common_end, matched_calls, same_function};
    use isotherm_model::calls::{Call, Callee, FunctionCalls, MatchedBy};

    /// Calls by (offset, line, column, callee: `m` for malloc, else a function, `*` for a pointer).
    fn function(first_line: u32, calls: &[(u64, u32, u32, &str)]) -> FunctionCalls {
        let call = |&(offset, line, column, callee): &(u64, u32, u32, &str)| Call {
            offset,
            line: (line > 0).then_some(line),
            column: (column > 0).then_some(column),
            callee: match callee {
                "m" => Callee::Allocation,
                "*" => Callee::Unknown,
                name => Callee::Function(name.to_owned()),
            },
            variable: None,
        };
        FunctionCalls {
            function: "main".to_owned(),
            file: Some("main.c".to_owned()),
            first_line: (first_line > 0).then_some(first_line),
            calls: calls.iter().map(call).collect(),
        }
    }

    /// The matches of the calls at 1, 2, ...
    fn found(former: &FunctionCalls, now: &FunctionCalls) -> Vec<Option<(Vec<u64>, MatchedBy)>> {
        let found = matched_calls(former, now);
        let calls = former.calls.iter();
        calls
            .map(|call| found.get(&call.offset).map(|m| (m.offsets.clone(), m.by)))
            .collect()
    }

    const TWO: [(u64, u32, u32, &str); 2] = [(1, 29, 14, "m"), (2, 30, 14, "m")];

    #[test]
    fn lines_are_counted_from_the_beginning_of_the_function() {
        let former = function(20, &TWO);
        for above in [0, 1, 5] {
            let line = |line| line + above;
            let now = function(
                20 + above,
                &[
                    (11, line(29), 14, "m"),
                    (12, line(30), 14, "m"),
                    (13, line(31), 5, "puts"),
                ],
            );
            let wanted = [11, 12].map(|offset| Some((vec![offset], MatchedBy::Line)));
            assert_eq!(found(&former, &now), wanted, "{above} lines");
        }
    }

    #[test]
    fn a_line_added_within_a_function_shifts_no_site_to_its_neighbour() {
        let former = function(20, &TWO);
        for first in [29, 30] {
            let now = function(20, &[(11, first, 14, "m"), (12, 31, 14, "m")]);
            let wanted = [11, 12].map(|offset| Some((vec![offset], MatchedBy::Order)));
            assert_eq!(found(&former, &now), wanted, "first at {first}");
        }
    }

    #[test]
    fn an_edited_function_with_more_or_fewer_calls_is_not_guessed_at() {
        let former = function(20, &TWO);
        let more = function(
            20,
            &[(11, 28, 14, "m"), (12, 30, 14, "m"), (13, 31, 14, "m")],
        );
        let fewer = function(20, &[(11, 30, 14, "m")]);
        for now in [more, fewer] {
            assert_eq!(found(&former, &now), [None, None]);
        }
    }

    #[test]
    fn a_call_that_assigns_to_another_variable_is_another_call() {
        let named = |mut function: FunctionCalls, variables: &[&str]| {
            for (call, variable) in function.calls.iter_mut().zip(variables) {
                call.variable = Some((*variable).to_owned());
            }
            function
        };
        let former = named(function(20, &TWO), &["a", "b"]);
        // `c` is at the line of the former `a`.
        let calls = [(11, 29, 14, "m"), (12, 30, 14, "m"), (13, 31, 14, "m")];
        let now = named(function(20, &calls), &["c", "a", "b"]);
        let by_variable = |offset| Some((vec![offset], MatchedBy::Variable));
        assert_eq!(found(&former, &now), [by_variable(12), by_variable(13)]);
        let now = named(function(20, &TWO), &["c", "b"]);
        assert_eq!(found(&former, &now), [None, by_variable(2)]);
    }

    #[test]
    fn columns_tell_calls_of_one_line_apart_and_so_does_what_is_called() {
        let former = function(20, &[(1, 29, 14, "m"), (2, 29, 40, "m")]);
        let now = function(
            20,
            &[(11, 29, 40, "m"), (12, 29, 14, "m"), (13, 29, 14, "rows")],
        );
        let by_line = |offset| Some((vec![offset], MatchedBy::Line));
        assert_eq!(found(&former, &now), [by_line(12), by_line(11)]);
        // Without columns every call of the line may match.
        let former = function(20, &[(1, 29, 0, "m")]);
        let both = Some((vec![11, 12], MatchedBy::Line));
        assert_eq!(found(&former, &now), [both]);
    }

    #[test]
    fn without_lines_calls_are_found_by_their_order_where_their_number_is_the_same() {
        let former = function(0, &[(1, 0, 0, "load"), (2, 0, 0, "m")]);
        let now = function(
            0,
            &[(11, 0, 0, "puts"), (12, 0, 0, "load"), (13, 0, 0, "m")],
        );
        let wanted = [12, 13].map(|offset| Some((vec![offset], MatchedBy::Order)));
        assert_eq!(found(&former, &now), wanted);
        let pointer = function(0, &[(1, 0, 0, "*")]);
        let now = function(0, &[(11, 0, 0, "*"), (12, 0, 0, "*")]);
        assert_eq!(found(&pointer, &now), [None]);
    }

    #[test]
    fn the_only_call_of_a_function_is_found_under_another_name_but_an_allocation_is_not() {
        let former = function(0, &[(1, 0, 0, "__libc_start_main_impl")]);
        let now = function(0, &[(11, 0, 0, "__libc_start_main")]);
        let wanted = Some((vec![11], MatchedBy::Line));
        assert_eq!(found(&former, &now), [wanted]);
        assert_eq!(found(&function(0, &[(1, 0, 0, "m")]), &now), [None]);
    }

    fn in_file(name: &str, file: Option<&str>) -> FunctionCalls {
        FunctionCalls {
            function: name.to_owned(),
            file: file.map(str::to_owned),
            ..FunctionCalls::default()
        }
    }

    #[test]
    fn of_functions_of_one_name_the_one_of_the_same_file_is_meant() {
        let now = [
            in_file("init", Some("/new/src/a.c")),
            in_file("init", Some("/new/src/b.c")),
            in_file("main", Some("/new/src/a.c")),
        ];
        let file = |former: &str| {
            let former = in_file("init", Some(former));
            same_function(&former, &now).and_then(|found| found.file.clone())
        };
        assert_eq!(file("/old/src/b.c").as_deref(), Some("/new/src/b.c"));
        assert_eq!(file("/old/src/c.c"), None);
        assert_eq!(same_function(&in_file("init", None), &now), None);
        let twice = [now[0].clone(), now[0].clone()];
        assert_eq!(same_function(&now[0], &twice), None);
        assert_eq!(common_end("/a/x/y.c", "/b/x/y.c"), 2);
    }
}
