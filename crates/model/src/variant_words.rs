//! The words by which files, reports and the command line name the variants of an enumeration.

/// Gives an enumeration `ALL`, `word` and `from_word`, from one list of its variants and their words.
#[macro_export]
macro_rules! variant_words {
    ($name:ident { $($variant:ident = $word:literal,)+ }) => {
        impl $name {
            /// All variants, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word used in files, in reports and on the command line.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The variant with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.word() == word)
            }
        }
    };
}
