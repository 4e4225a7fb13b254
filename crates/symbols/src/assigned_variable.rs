//! `Sources` reads source files and finds the variable that the result of a call is assigned to: `graph->edges` of
//! `graph->edges = (edge *)malloc(n)`. The resolver shows it beside a site, and the sites of a plan are found by it in a rebuilt program.
//!
//! Only plain cases are answered, because a wrong name is worse than none: an assignment whose right side is the
//! call alone, except casts, and a variable that is declared with the call of its constructor. A file changed
//! after the program was built is ignored.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use isotherm_sys::files::read_input_text;

/// Largest source file that is read.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Keywords that precede a call as types precede a variable.
const NOT_TYPES: [&str; 12] = [
    "return",
    "new",
    "delete",
    "throw",
    "else",
    "case",
    "goto",
    "co_return",
    "co_await",
    "co_yield",
    "do",
    "in",
];

/// Source files of one module.
#[derive(Debug)]
pub(crate) struct Sources {
    built: Option<SystemTime>,
    files: HashMap<PathBuf, Option<Vec<String>>>,
}

impl Sources {
    /// The source files of the module at this path.
    pub(crate) fn of(module: &Path) -> Self {
        let built = module.metadata().and_then(|found| found.modified()).ok();
        Self {
            built,
            files: HashMap::new(),
        }
    }

    /// The variable that a call at a line and column assigns to, both from 1.
    pub(crate) fn variable(&mut self, file: &Path, line: u32, column: u32) -> Option<String> {
        let built = self.built?;
        let lines = self
            .files
            .entry(file.to_owned())
            .or_insert_with(|| read(file, built));
        let lines = lines.as_deref()?;
        let at = (line as usize).checked_sub(1)?;
        let before = at.checked_sub(1).and_then(|at| lines.get(at));
        assigned(before.map_or("", String::as_str), lines.get(at)?, column)
    }
}

/// The lines of a regular file that is no newer than the module built from it.
fn read(path: &Path, built: SystemTime) -> Option<Vec<String>> {
    if path.metadata().ok()?.modified().ok()? > built {
        return None;
    }
    let text = read_input_text(path, FILE_BYTES_MAX).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

/// The variable that the call at a column of a line assigns to. `previous` is the line before, where a long
/// assignment may begin.
fn assigned(previous: &str, line: &str, column: u32) -> Option<String> {
    let at = call_start(line, (column as usize).checked_sub(1)?)?;
    let (before, call) = line.split_at_checked(at)?;
    let name: &str = &call[..call.find(|c| !is_word(c)).unwrap_or(call.len())];
    // A name in capitals is a macro, which may hold more than one call.
    if !name.contains(|c: char| c.is_ascii_lowercase()) || before.contains("//") {
        return None;
    }
    let joined = format!("{} ", previous.trim_end());
    let before = match before.trim().is_empty() && !previous.contains("//") {
        true => &joined,
        false => before,
    };
    let statement = before.rsplit([';', '{', '}']).next().unwrap_or(before);
    match before_the_equals_sign(statement) {
        Some(left) => target(left),
        None => declared(statement, name, &call[name.len()..]),
    }
}

/// The start of the call at a recorded column. Clang and gcc's C record the name; gcc's C++ records the opening or
/// closing bracket of the arguments, and of `new T` the type.
fn call_start(line: &str, at: usize) -> Option<usize> {
    let noted = line.get(at..)?.chars().next()?;
    let name_end = match noted {
        ')' | ']' | '}' => opening(&line[..=at])?,
        '(' | '{' => at,
        _ => {
            let inside = line[..at].ends_with(is_word) || !is_word(noted);
            return (!inside).then(|| with_new(line, at).unwrap_or(at));
        }
    };
    let mut name = line[..name_end].trim_end();
    if name.ends_with('>') {
        name = &name[..opening(name)?];
    }
    let start = name.trim_end_matches(is_word).len();
    match with_new(line, start) {
        Some(start) => Some(start),
        // Only `new` has its size in such brackets.
        None => (noted != ']' && start < name.len()).then_some(start),
    }
}

/// The start of the `new` before the type at this position.
fn with_new(line: &str, mut start: usize) -> Option<usize> {
    while let Some(outer) = line[..start].strip_suffix("::") {
        start = outer.trim_end_matches(is_word).len();
    }
    let before = line[..start].strip_suffix(' ')?.trim_end();
    let outer = before.strip_suffix("new")?;
    (!outer.ends_with(is_word)).then_some(outer.len())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The text left of an `=` that only casts and a namespace follow.
fn before_the_equals_sign(statement: &str) -> Option<&str> {
    let mut rest = statement.trim_end();
    while let Some(shorter) = rest.strip_suffix("::") {
        rest = shorter.trim_end_matches(is_word).trim_end();
    }
    loop {
        if let Some(inner) = rest.strip_suffix(')') {
            let open = inner.rfind('(')?;
            let is_type = |c: char| is_word(c) || " *&:<>,".contains(c);
            if !inner[open + 1..].chars().all(is_type) || inner[open + 1..].trim().is_empty() {
                return None;
            }
            rest = inner[..open].trim_end();
        } else if let Some(inner) = rest.strip_suffix(">(") {
            let open = inner.rfind("_cast<")?;
            rest = inner[..open].trim_end_matches(is_word).trim_end();
        } else {
            break;
        }
    }
    let left = rest.strip_suffix('=')?;
    let is_plain = !left.ends_with(|c| "=<>!+-*/%&|^".contains(c));
    is_plain.then_some(left)
}

/// The variable, member or element at the end of an assignment's left side.
fn target(left: &str) -> Option<String> {
    let left = left.trim_end();
    let mut start = left.len();
    while let Some(last) = left[..start].chars().next_back() {
        let text = &left[..start];
        if is_word(last) || last == '.' {
            start -= 1;
        } else if text.ends_with("->") || text.ends_with("::") {
            start -= 2;
        } else if last == ']' {
            start = opening(text)?;
        } else {
            break;
        }
    }
    let name = &left[start..];
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let stars = left[..start].len() - left[..start].trim_end_matches(['*', '&']).len();
    let outside = left[..start - stars].trim_end();
    if stars == 0 {
        return Some(name.to_owned());
    }
    // `double *a`: the star belongs to the type. `*a` alone: what `a` points to. After a comma it may be either.
    match outside.chars().next_back() {
        None | Some('(') => Some(left[start - stars..].to_owned()),
        Some(c) if is_word(c) || c == '>' => Some(name.to_owned()),
        Some(_) => None,
    }
}

/// The position of the bracket that the last one closes.
fn opening(text: &str) -> Option<usize> {
    let closing = text.chars().next_back()?;
    let opening = match closing {
        ')' => '(',
        ']' => '[',
        '}' => '{',
        _ => '<',
    };
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        depth += i32::from(c == closing) - i32::from(c == opening);
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The variable of a declaration such as `std::vector<double> v(n)`, whose constructor is the call.
fn declared(statement: &str, name: &str, after: &str) -> Option<String> {
    let kind = statement.trim();
    let is_type = |c: char| is_word(c) || " *&:<>,".contains(c);
    let first = kind.split(|c| !is_word(c)).next().unwrap_or_default();
    let last = kind.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    let is_macro = !last.is_empty() && !last.contains(|c: char| c.is_ascii_lowercase());
    let whole = name != "new"
        && kind.chars().all(is_type)
        && !kind.is_empty()
        && kind.ends_with(|c| is_word(c) || c == '>')
        && !NOT_TYPES.contains(&first)
        && !NOT_TYPES.contains(&last)
        && !is_macro;
    (whole && after.trim_start().starts_with(['(', '{'])).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Sources, assigned};

    /// The variable of the call that begins at `@`.
    fn of(line: &str) -> Option<String> {
        let column = line.find('@').expect("a mark") + 1;
        assigned("", &line.replace('@', ""), column as u32)
    }

    #[test]
    fn the_left_side_of_a_plain_assignment_is_the_variable() {
        for (line, variable) in [
            ("    double *a = @malloc(n);", "a"),
            ("a=@malloc(n);", "a"),
            (
                "  g->edges = (edge *)@malloc(n * sizeof(edge));",
                "g->edges",
            ),
            ("  rows[i + x[2]] = @calloc(n, 8);", "rows[i + x[2]]"),
            ("  *out = @malloc(n);", "*out"),
            ("  if ((p = @malloc(n)) == NULL) {", "p"),
            ("  x = @malloc(1), y = malloc(2);", "x"),
            ("  x = malloc(1), y = @malloc(2);", "y"),
            ("  int k = 0; char **names = @malloc(8);", "names"),
            ("  auto *m = static_cast<double *>(@malloc(n));", "m"),
            ("  auto t = std::@make_unique<T>(n);", "t"),
            ("  this->data_ = @new double[n];", "this->data_"),
            ("  std::vector<std::pair<int, int>> @pairs(n);", "pairs"),
            ("  for (;;) { Matrix @m{n, n};", "m"),
            // Columns as recorded by gcc's C++.
            ("  double *r = (double *)malloc@(n); r[0] = 1;", "r"),
            ("  Node *a = new @Node;", "a"),
            ("  Node *b = new Node(@);", "b"),
            ("  m = new double[k@];", "m"),
            ("  m = new space::Cell<int>[rows[k]@];", "m"),
            ("  double *e = get@(c * 1000);", "e"),
            ("  auto u = std::make_unique<double[]>(c * 1000@);", "u"),
            ("  std::vector<int> w(c * 1000@), z(c);", "w"),
            ("  s.m = static_cast<double *>(malloc@(c * 1000));", "s.m"),
        ] {
            assert_eq!(of(line).as_deref(), Some(variable), "{line}");
        }
        let long = assigned("  double *field =", "      malloc(n);", 7);
        assert_eq!(long.as_deref(), Some("field"));
    }

    #[test]
    fn where_the_source_leaves_a_doubt_there_is_no_variable() {
        for line in [
            "  return @malloc(n);",
            "  use(@malloc(n));",
            "  a = wrap(@malloc(n));",
            "  a = b + @size(n);",
            "  a == @make(n);",
            "  a += @make(n);",
            "  a = ok ? @malloc(n) : 0;",
            "  .edges = @malloc(n),",
            "  f(x)->y = @malloc(n);",
            "  double *a = malloc(1), *b = @malloc(2);",
            "  a = @ALLOC(n);",
            "  return @make(n);",
            "  else @make(n);",
            "  // a = @malloc(n);",
            "  @push_back(n);",
            "  CHECK @make(n);",
            "  std::vector<int> w(c * 1000), z(c@);",
            "  use(new Node(@));",
            "  return new double[n@];",
            "  y.resize@(c * 1000);",
            "  a = b[n@];",
            "  a = mal@loc(n);",
            "  renew double[n@];",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(assigned("  // a =", "  malloc(n);", 3), None);
        for column in [0, 99, u32::MAX] {
            assert_eq!(assigned("", "a = größe(n);", column), None);
        }
        assert_eq!(assigned("", "ö = f(n);", 2), None);
    }

    #[test]
    fn a_source_that_was_edited_after_the_build_is_not_believed() {
        let folder = tempfile::tempdir().expect("a directory");
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        let write = |path: &std::path::Path, at: u64| {
            std::fs::write(path, "a = malloc(n);\n").expect("writes");
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(at);
            let file = std::fs::File::options()
                .write(true)
                .open(path)
                .expect("opens");
            file.set_modified(time).expect("takes a time");
        };
        write(&program, 1_000);
        write(&source, 1_000);
        let found = Sources::of(&program).variable(&source, 1, 5);
        assert_eq!(found.as_deref(), Some("a"));
        write(&source, 1_001);
        assert_eq!(Sources::of(&program).variable(&source, 1, 5), None);
        assert_eq!(Sources::of(&program).variable(folder.path(), 1, 5), None);
    }
}
