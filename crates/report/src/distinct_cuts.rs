//! [`make_distinct`] cuts texts again that were cut to a width and became alike, such as the locations of sites beside a table: each then
//! shows where it differs from the others, or ends in a number where the width is too small for that.
//!
//! ```text
//! wholes          graph.py:12 load < Loader.read_all_of_the_edges (graph.py:40)
//!                 graph.py:12 load < Loader.read_all_of_the_edges (graph.py:88)
//! cut at the end  graph.py:12 load < Loader.read_a…
//!                 graph.py:12 load < Loader.read_a…
//! distinct        graph.py:12 load < Loader.rea…40)
//!                 graph.py:12 load < Loader.rea…88)
//! ```

use std::collections::BTreeMap;

use crate::words::clip;

/// Stands between the beginning that is kept and the part in which texts differ.
const CUT: char = '…';

/// The part of the room that the beginning of a text keeps, a third; at most as much is shown before the first difference.
const KEPT_PART: usize = 3;

/// Characters of a number, for at most 99 texts.
const NUMBER: usize = 3;

/// Cuts texts again that were cut to the same characters although their wholes differ, so that each shows where it differs. `cut` has one
/// text for each of `wholes`, which have no control characters; a room is at least 12 characters. Texts that a small room leaves alike even
/// so end in a number: `~2`.
pub(crate) fn make_distinct(cut: &mut [String], wholes: &[String], room: usize) {
    let wholes: Vec<Vec<char>> = wholes.iter().map(|whole| whole.chars().collect()).collect();
    let mut groups = alike(cut, 0..cut.len());
    while let Some(group) = groups.pop() {
        let Some(common) = first_difference(&wholes, &group) else {
            continue;
        };
        for at in &group {
            cut[*at] = around(&wholes[*at], common, room);
        }
        // Smaller groups: where they differ first, two of the group are shown with different characters.
        let parts = alike(cut, group.iter().copied());
        groups.extend(parts.into_iter().filter(|part| part.len() < group.len()));
    }
    number(cut, &wholes, room);
}

/// Numbers the texts that are alike although their wholes differ.
fn number(cut: &mut [String], wholes: &[Vec<char>], room: usize) {
    let groups = alike(cut, 0..cut.len()).into_iter();
    let groups = groups.filter(|group| first_difference(wholes, group).is_some());
    let alike_still: Vec<usize> = groups.flatten().collect();
    for at in &alike_still {
        cut[*at] = clip(&cut[*at], room.saturating_sub(NUMBER));
    }
    for group in alike(cut, alike_still.into_iter()) {
        let mut known: Vec<&[char]> = Vec::new();
        for at in group {
            let whole = wholes[at].as_slice();
            let place = known.iter().position(|other| *other == whole);
            let place = place.unwrap_or(known.len());
            if place == known.len() {
                known.push(whole);
            }
            cut[at] += &format!("~{}", place + 1);
        }
    }
}

/// Positions with the same text, where it is there more than once.
pub(crate) fn alike(texts: &[String], positions: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
    let mut groups = BTreeMap::<&str, Vec<usize>>::new();
    for at in positions {
        groups.entry(&texts[at]).or_default().push(at);
    }
    let groups = groups.into_values();
    groups.filter(|group| group.len() > 1).collect()
}

/// How many characters all texts of a group begin with; `None` where they are the same.
fn first_difference(wholes: &[Vec<char>], group: &[usize]) -> Option<usize> {
    let first = &wholes[group[0]];
    let differs = |at: &usize| {
        let whole = &wholes[*at];
        let same = first.iter().zip(whole).take_while(|(a, b)| a == b).count();
        (whole != first).then_some(same)
    };
    group.iter().filter_map(differs).min()
}

/// The beginning of a text and what is around the character at a place, in at most `room` characters.
fn around(text: &[char], place: usize, room: usize) -> String {
    let part = room / KEPT_PART;
    let before = &text[..place.min(text.len())];
    let word = before.iter().rposition(|c| !c.is_alphanumeric());
    let from = word.map_or(0, |at| at + 1).max(place.saturating_sub(part));
    let from = from.min(text.len());
    let rest = clip(&text[from..].iter().collect::<String>(), room - 1 - part);
    let beginning = room - 1 - rest.chars().count();
    if beginning >= from {
        return clip(&text.iter().collect::<String>(), room);
    }
    let beginning = text[..beginning].iter().collect::<String>();
    format!("{beginning}{CUT}{rest}")
}

#[cfg(test)]
mod tests {
    use super::make_distinct;
    use crate::words::clip;

    fn distinct(wholes: &[&str], room: usize) -> Vec<String> {
        let mut cut: Vec<String> = wholes.iter().map(|whole| clip(whole, room)).collect();
        let wholes: Vec<String> = wholes.iter().map(ToString::to_string).collect();
        make_distinct(&mut cut, &wholes, room);
        cut
    }

    #[test]
    fn the_beginning_and_the_difference_are_kept() {
        let wholes = [
            "graph.py:12 load < Loader.read_all_of_the_edges (graph.py:140)",
            "graph.py:12 load < Loader.read_all_of_the_edges (graph.py:141)",
            "graph.py:19 free",
        ];
        let wanted = [
            "graph.py:12 load < Loader.re…140)",
            "graph.py:12 load < Loader.re…141)",
            "graph.py:19 free",
        ];
        assert_eq!(distinct(&wholes, 33), wanted);
    }

    #[test]
    fn texts_that_differ_in_several_places_are_all_distinct() {
        let head = "a_path_that_many_functions_share/";
        let functions = ["read", "read_all", "write", "write_all_blocks_of_it", "w"];
        let wholes: Vec<String> = functions
            .iter()
            .flat_map(|function| ["x", "y"].map(|end| format!("{head}{function}/{end}")))
            .collect();
        let wholes: Vec<&str> = wholes.iter().map(String::as_str).collect();
        for room in 12..70 {
            let mut cut = distinct(&wholes, room);
            assert!(cut.iter().all(|text| text.chars().count() <= room));
            cut.sort();
            cut.dedup();
            assert_eq!(cut.len(), wholes.len(), "{room}: {cut:#?}");
        }
    }

    #[test]
    fn one_text_that_begins_another_differs_by_its_end() {
        let wholes = ["the_same_beginning_of", "the_same_beginning_of_both"];
        assert_eq!(
            distinct(&wholes, 16),
            ["the_same_begi…of", "the_same…of_both"]
        );
    }

    #[test]
    fn equal_texts_and_texts_with_room_stay() {
        assert_eq!(distinct(&["abcdefghijklmno"; 2], 12), ["abcdefghijk…"; 2]);
        assert_eq!(distinct(&["abc", "abd", "abc"], 12), ["abc", "abd", "abc"]);
    }
}
