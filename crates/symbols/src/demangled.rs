//! [`demangled`] turns the mangled name of a C++ function or variable into the form of its source, without parameters and result type, and
//! returns any other name unchanged. The labels of static data (`data NAME`), `isotherm sites` and `isotherm import`, which compares the
//! callees of sites with the functions of call stacks, use it.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest name that is printed, in bytes. Mangled names refer back to their own parts, so that a short one
/// may expand to gigabytes.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// The name of a function without its parameters and result: `_ZN5space4makeIiEEPT_m` is
/// `space::make<int>`. A name that is not a mangled C++ name is returned unchanged.
#[must_use]
pub fn demangled(name: &str) -> String {
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut shown = Bounded(String::new());
    match Symbol::new(name).map(|symbol| symbol.structured_demangle(&mut shown, &options)) {
        Ok(Ok(())) => closed(&shown.0),
        _ => name.to_owned(),
    }
}

/// Closing brackets in the style of C++11 and LLVM: `a<b<c> >` becomes `a<b<c>>`.
#[must_use]
pub fn closed(name: &str) -> String {
    let mut text = name.to_owned();
    while text.contains("> >") {
        text = text.replace("> >", ">>");
    }
    text
}

/// A text limited to [`SHOWN_BYTES_MAX`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > SHOWN_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{SHOWN_BYTES_MAX, demangled};

    #[test]
    fn names_of_cxx_are_shown_as_written_and_others_as_they_are() {
        for (name, shown) in [
            ("_Z7checkedm", "checked"),
            ("_ZL7checkedm", "checked"),
            ("_ZN5space4makeIiEEPT_m", "space::make<int>"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int>>::push_back",
            ),
            ("xmalloc", "xmalloc"),
            ("operator new", "operator new"),
            ("_Zebra", "_Zebra"),
            ("_Z", "_Z"),
            ("", ""),
        ] {
            assert_eq!(demangled(name), shown);
        }
    }

    /// `f` with this number of types, each but the first an `a` of the one before, twice. Mangled names refer
    /// to a type by its number in base 36; the function and each `a` have a number as well.
    fn doubled(types: u32) -> String {
        let digit =
            |number: u32| char::from_digit(number, 36).map(|digit| digit.to_ascii_uppercase());
        let number = |number: u32| {
            let digits = [
                digit(number / 36).filter(|_| number >= 36),
                digit(number % 36),
            ];
            digits.into_iter().flatten().collect::<String>()
        };
        let more = (1..types).map(|before| {
            let before = number(2 * before - 1);
            format!("1aIS{before}_S{before}_E")
        });
        format!("_Z1fI1aIiE{}Evv", more.collect::<String>())
    }

    #[test]
    fn a_name_that_stands_for_gigabytes_is_left_as_it_is() {
        assert_eq!(demangled(&doubled(2)), "f<a<int>, a<a<int>, a<int>>>");
        let long = doubled(60);
        assert_eq!(demangled(&long), long);
        assert!(demangled(&doubled(5)).len() < SHOWN_BYTES_MAX);
    }
}
