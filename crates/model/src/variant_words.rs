//! `variant_words!` declares an enumeration with the words by which files, reports and the command line name its variants.

/// Declares an enumeration with the word of each variant, and gives it `ALL`, `word` and `from_word`.
///
/// ```
/// isotherm_model::variant_words! {
///     /// The direction of a move.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Direction {
///         /// To a faster tier.
///         Up = "promote",
///         /// To a slower tier.
///         Down = "demote",
///     }
/// }
/// assert_eq!(Direction::ALL, [Direction::Up, Direction::Down]);
/// assert_eq!(Direction::Up.word(), "promote");
/// assert_eq!(Direction::from_word("demote"), Some(Direction::Down));
/// ```
#[macro_export]
macro_rules! variant_words {
    (
        $(#[$of_enum:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$of_enum])*
        $visibility enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All variants, in order.
            $visibility const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word used in files, in reports and on the command line.
            #[must_use]
            $visibility const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The variant with this word.
            #[must_use]
            $visibility fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.word() == word)
            }
        }
    };
}
