//! The list of options: each with its name, its allowed values, and its text.
//! ```text
//! options! { /// help   name: type = default, limits if rule; ... }
//!     -->  OptionValues   a field for each             Options::name(value)   a setter for each
//!     -->  OptionInfo     name, kind, limits, help, and how its text is read and written
//! ```
//! Invariant: each option is defined once. A value that was read from a text can be written as a
//! text.

use crate::plan::options::OptionValues;

/// A description of an option, for command lines and bindings that offer it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The option's name, which is also that of its field and its setter.
    pub name: &'static str,
    /// The kind of its text: a number, a switch, a name, ...
    pub kind: &'static str,
    /// Its allowed values.
    pub limits: &'static str,
    /// What the option does, in Markdown.
    pub help: &'static str,
    pub(super) holds: fn(&OptionValues) -> bool,
    pub(super) read: fn(&mut OptionValues, &str) -> Result<(), String>,
    pub(super) write: fn(&OptionValues) -> String,
}

impl OptionInfo {
    /// Returns the text of its default.
    pub fn default_text(&self) -> String {
        (self.write)(&OptionValues::default())
    }
}

/// Defines the options from a list.
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
            /// The parameters of the tables' filters besides memory, for guards with a filter for
            /// each table. (A filter's bytes record how it was made, so existing tables keep their
            /// filters when this changes.)
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

        /// All options.
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
