//! Options as a list: each with its name, what it may be, and its text.
//! ```text
//! options! { /// help   name: type = default, limits if rule; ... }
//!     -->  OptionValues   a field for each             Options::name(value)   a setter for each
//!     -->  OptionInfo     name, kind, limits, help, and how its text is read and written
//! ```
//! Invariant: an option is said once; what its text gives can be written as that text.

use crate::plan::options::OptionValues;

/// What is known of an option: for command lines and bindings, which make theirs of it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct OptionInfo {
    /// Its name, as its field and its setter have it.
    pub name: &'static str,
    /// What its text is: a number, true or false, a name, ...
    pub kind: &'static str,
    /// What it may be.
    pub limits: &'static str,
    /// What it does, in Markdown.
    pub help: &'static str,
    pub(super) holds: fn(&OptionValues) -> bool,
    pub(super) read: fn(&mut OptionValues, &str) -> Result<(), String>,
    pub(super) write: fn(&OptionValues) -> String,
}

impl OptionInfo {
    /// The text of its default.
    pub fn default_text(&self) -> String {
        (self.write)(&OptionValues::default())
    }
}

/// Defines the options, from a list of them.
macro_rules! options {
    ($($(#[doc = $doc:literal])+
        $name:ident: $type:ty $(, $given:ty)? = $default:expr, $limits:literal
            $(if |$it:ident| $holds:expr)?;)+
    ) => {
        /// The values of all options, each with its meaning. Read them; [`Options`] sets them.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct OptionValues {
            $($(#[doc = $doc])+
            #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")]
            pub $name: $type,)+
            /// Of guards with a filter for each table: what that is told beside its memory. (A
            /// filter's bytes say how it was made: tables that there are keep theirs when this
            /// changes.)
            pub filter: FilterTuning,
        }

        impl Default for OptionValues {
            fn default() -> Self {
                OptionValues { $($name: $default,)+ filter: FilterTuning::default() }
            }
        }

        /// Setters, each of the option of its name ([`OptionValues`] says what it means).
        impl Options {
            $(#[doc = concat!("Sets [`", stringify!($name), "`](OptionValues::", stringify!($name), "): ", $limits, ". Default: `", stringify!($default), "`.")]
            #[must_use]
            pub fn $name(mut self, $name: options!(@given $type $(, $given)?)) -> Self {
                self.values.$name = $name.into();
                self.mark(stringify!($name));
                self
            })+
        }

        /// All of them.
        const LIST: &[OptionInfo] = &[$(OptionInfo {
            name: stringify!($name),
            kind: <$type as OptionText>::KIND,
            limits: $limits,
            help: concat!($($doc,)+),
            holds: |_values| true $(&& {
                let $it = &_values.$name;
                $holds
            })?,
            read: |values, text| OptionText::read(text).map(|value| values.$name = value),
            write: |values| values.$name.text(),
        },)+];
    };
    (@given $type:ty) => { $type };
    (@given $type:ty, $given:ty) => { impl Into<$given> };
}

pub(super) use options;
