//! The options of one key space, and which of them the store keeps.
//! ```text
//! given     bits_per_key 14               set for this opening
//! kept      guard surf-real, bits_per_key 10  set before, recorded in the manifest
//! store     direct, sync, threads, ...    for all key spaces
//!      -->  guard surf-real, bits_per_key 14, the rest by default
//!           these two are kept
//! ```
//! Invariant: an option belongs either to the store or to each key space.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel_filters::{FilterTuning, Tuning};

use crate::entries::compression::Compression;
use crate::entries::merge_operator::{MergeOperator, OperatorOption};
use crate::error::{Error, Result};
use crate::plan::guard_kind::GuardKind;
use crate::plan::options::{OptionInfo, Options};
use crate::plan::partitions::Granularity;
use crate::plan::policy::Policy;

/// Options of the whole store. Except for those in `OF_STORE_KEPT`, each opening sets them anew.
const OF_STORE: [&str; 15] = [
    "block_cache_bytes",
    "direct",
    "overlap",
    "merge_bytes_per_second",
    "merges_at_once",
    "max_open_files",
    "mapped_log",
    "sync",
    "background",
    "time_calls",
    "max_log_bytes",
    "kept_log_bytes",
    "transaction_memory",
    "lock_timeout",
    "create_if_missing",
];

/// Options of the store that are kept with the default key space. An opening that does not set
/// them, as by a tool that only reads, must not discard what they keep.
const OF_STORE_KEPT: [&str; 1] = ["kept_log_bytes"];

/// The name that is marked as set when filters are tuned by values. Their options have their own
/// names.
const FILTER: &str = "filter";

/// The option whose value may not change.
const MERGE_OPERATOR: &str = "merge_operator";

/// How a key space is laid out: those [`Options`] that each key space has for itself. The store
/// keeps what is set. It holds for later openings until it is set again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyspaceOptions {
    options: Options,
}

/// Defines setters like those of `Options`.
macro_rules! setters {
    ($($name:ident: $type:ty),+ $(,)?) => {
        /// Setters like those of [`Options`].
        impl KeyspaceOptions {
            $(#[doc = concat!("As [`Options::", stringify!($name), "`].")]
            #[must_use]
            pub fn $name(self, $name: $type) -> Self {
                KeyspaceOptions { options: self.options.$name($name) }
            })+
        }
    };
}

setters! {
    size_ratio: u32,
    policy: Policy,
    write_buffer_bytes: usize,
    guard: GuardKind,
    bits_per_key: f64,
    filter_memory: u64,
    monkey: bool,
    point_bits: u8,
    learn_questions: bool,
    block_bytes: usize,
    compression: impl Into<Compression>,
    last_level_compression: impl Into<Option<Compression>>,
    dictionary_bytes: usize,
    value_threshold: usize,
    value_garbage_share: f64,
    value_move_oldest: f64,
    value_file_bytes: u64,
    slow_down_runs: impl Into<Option<usize>>,
    stop_runs: impl Into<Option<usize>>,
    table_bytes: u64,
    granularity: Granularity,
    partition_bytes: u64,
    eager_tombstones: bool,
    merge_operator: impl Into<OperatorOption>,
    merge_piece_bytes: u64,
    log: bool,
    filter: FilterTuning,
}

impl KeyspaceOptions {
    /// Returns the newly set options to keep, and all options that are kept then. None: some hold
    /// for one opening only.
    pub(crate) fn to_keep(&self, kept: &Kept) -> Result<(Named, Option<Kept>)> {
        let mut new = self.options.to_keep(kept)?;
        new.retain(|(name, _)| !OF_STORE_KEPT.contains(&name.as_str()));
        let all = || kept.iter().map(|(name, text)| (name.clone(), text.clone()));
        let then = self.options.all_last().then(|| all().chain(new.iter().cloned()).collect());
        Ok((new, then))
    }

    /// Returns an error if a key space with these kept options could not be opened.
    pub(crate) fn check_kept(kept: &Kept, store: &Path) -> Result<()> {
        let is_not_kept = |name: &&String| {
            OF_STORE.contains(&name.as_str()) && !OF_STORE_KEPT.contains(&name.as_str())
        };
        if let Some(name) = kept.keys().find(is_not_kept) {
            let problem = "is of the whole store, and no key space keeps it".into();
            return Err(Error::Option { option: name.clone().into(), problem });
        }
        Options::new().with_kept(kept, store)?.check()
    }

    /// Whether no option was set.
    pub(crate) fn sets_nothing(&self) -> bool {
        self.options.sets_nothing()
    }

    /// Whether an option can be set while the key space is open, whoever uses it.
    pub(crate) fn is_set_while_open(name: &str) -> bool {
        name == MERGE_OPERATOR
    }

    /// Whether a key space that is open with options `open` has those that are wanted.
    pub(crate) fn are_met_by(open: &Options, wanted: &Options) -> Result<bool> {
        let names = Self::list().map(|option| option.name);
        for name in names.filter(|name| !Self::is_set_while_open(name)) {
            if open.text_of(name)? != wanted.text_of(name)? {
                return Ok(false);
            }
        }
        Ok(open.filter == wanted.filter)
    }

    /// Whether the merge operator was set, or set to none.
    pub(crate) fn sets_operator(&self) -> bool {
        self.options.is_set(MERGE_OPERATOR)
    }

    /// Returns the merge operator that was set, and what to keep of it. The key space has the
    /// options `kept`, and is open with `open`. None: no operator was set.
    pub(crate) fn operator(
        &self,
        kept: &Kept,
        open: Option<&Arc<dyn MergeOperator>>,
    ) -> Result<Option<(&OperatorOption, Named)>> {
        if !self.sets_operator() {
            return Ok(None);
        }
        let operator = &self.options.merge_operator;
        check_operator(operator, kept.get(MERGE_OPERATOR).map(|name| &**name))?;
        check_operator(operator, open.map(|open| open.name()))?;
        let mut new = self.options.to_keep(kept)?;
        new.retain(|(name, _)| name == MERGE_OPERATOR);
        Ok(Some((operator, new)))
    }

    /// Returns the defaults.
    pub fn new() -> Self {
        KeyspaceOptions::default()
    }

    /// Like [`Options::tune`].
    #[must_use]
    pub fn tune<T: Tuning>(self, change: impl FnOnce(&mut T)) -> Self {
        KeyspaceOptions { options: self.options.tune(change) }
    }

    /// Like [`Options::for_now`].
    #[must_use]
    pub fn for_now(self, name: &str) -> Self {
        KeyspaceOptions { options: self.options.for_now(name) }
    }

    /// Returns every option of key spaces that has a text.
    pub fn list() -> impl Iterator<Item = &'static OptionInfo> {
        Options::list().iter().filter(|option| !OF_STORE.contains(&option.name))
    }

    /// Sets an option from its text, like [`Options::set`].
    ///
    /// # Errors
    /// `Option`: as for [`Options::set`], or it is an option of the whole store.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        if OF_STORE.contains(&&*name.replace('-', "_")) {
            let problem = "is of the whole store: it is set where that is opened".into();
            return Err(Error::Option { option: name.to_string().into(), problem });
        }
        self.options.set(name, text)
    }

    /// Returns the text of an option.
    ///
    /// # Errors
    /// `Option`: no option has this name.
    pub fn text_of(&self, name: &str) -> Result<String> {
        self.options.text_of(name)
    }
}

/// Takes those of a store's options that each key space has. The others have no effect.
impl From<Options> for KeyspaceOptions {
    fn from(options: Options) -> Self {
        KeyspaceOptions { options }
    }
}

/// Returns an error if the key space has, or may have, operands of another operator.
fn check_operator(given: &OperatorOption, known: Option<&str>) -> Result<()> {
    let known = known.filter(|known| *known != OperatorOption::none().to_string());
    let Some(known) = known.filter(|known| *known != given.to_string()) else { return Ok(()) };
    let problem = format!(
        "{given}, but the key space has the merge operator {known} for ever: open it with that \
         one, or with no word about it"
    );
    Err(Error::Option { option: MERGE_OPERATOR.into(), problem })
}

/// Kept options, as texts by name.
pub(crate) type Kept = BTreeMap<String, String>;

/// Names and texts of options.
pub(crate) type Named = Vec<(String, String)>;

/// Returns the write buffer's size, in bytes, of a key space with these kept options.
pub(crate) fn kept_buffer_bytes(kept: &Kept) -> usize {
    const NAME: &str = "write_buffer_bytes";
    let mut options = Options::new();
    // An invalid value is reported when the key space is opened.
    kept.get(NAME).map(|text| options.set(NAME, text));
    options.write_buffer_bytes
}

impl Options {
    /// Returns the options of the default key space of the store in a folder, with those that it
    /// has kept.
    pub(crate) fn with_kept(&self, kept: &Kept, store: &Path) -> Result<Options> {
        let mut options = self.clone();
        if self.is_set(MERGE_OPERATOR) {
            check_operator(&self.merge_operator, kept.get(MERGE_OPERATOR).map(|name| &**name))?;
        }
        // Filters that are tuned by values are set as a whole.
        let is_tuned = self.is_set(FILTER);
        let of_filters = |name: &str| Options::filter_list().iter().any(|it| it.name == name);
        let is_given = |name: &str| self.is_set(name) || is_tuned && of_filters(name);
        for (name, text) in kept.iter().filter(|(name, _)| !is_given(name)) {
            options.set(name, text).map_err(|error| kept_by(store, error))?;
        }
        Ok(options)
    }

    /// Returns the options of a key space that has kept these. `self` are those of the store in the
    /// folder.
    pub(crate) fn of_keyspace(
        &self,
        kept: &Kept,
        given: &KeyspaceOptions,
        store: &Path,
    ) -> Result<Options> {
        let mut options = given.options.with_kept(kept, store)?;
        for name in OF_STORE {
            options.set(name, &self.text_of(name)?)?;
        }
        Ok(options)
    }

    /// Returns the set options to keep: names and texts that are not kept yet.
    pub(crate) fn to_keep(&self, kept: &Kept) -> Result<Named> {
        let mut new = Vec::new();
        let is_tuned = self.lasting().any(|name| name == FILTER);
        let of_filters = if is_tuned { Options::filter_list() } else { Vec::new() };
        let of_filters = of_filters.into_iter().map(|option| option.name);
        let is_kept = |name: &&str| !OF_STORE.contains(name) || OF_STORE_KEPT.contains(name);
        let names = self.lasting().filter(|name| *name != FILTER).filter(is_kept);
        for name in names.chain(of_filters) {
            let text = self.text_of(name)?;
            if kept.get(name) != Some(&text) {
                new.push((name.to_string(), text));
            }
        }
        Ok(new)
    }
}

/// Turns an error of a kept option, which nobody has set now, into one that names the store.
fn kept_by(store: &Path, error: Error) -> Error {
    let Error::Option { option, problem } = error else { return error };
    let problem = format!(
        "the store {} keeps a value of it, but {problem}. Register the guards that it was made with \
         first (trommel_guards::register), or set another value",
        store.display()
    );
    Error::Option { option, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = "s";

    fn kept(all: &[(&str, &str)]) -> Kept {
        all.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    }

    #[test]
    fn every_option_is_of_the_store_or_of_each_key_space() {
        let known = |name: &&str| Options::list().iter().any(|option| option.name == *name);
        assert!(OF_STORE.iter().all(known));
        assert_eq!(KeyspaceOptions::list().count() + OF_STORE.len(), Options::list().len());
        for option in KeyspaceOptions::list() {
            let mut options = KeyspaceOptions::new();
            options.set(option.name, &option.default_text()).expect("its default");
        }
        for name in OF_STORE {
            let wrong = KeyspaceOptions::new().set(name, "1").expect_err("of the store");
            assert!(wrong.to_string().contains("whole store"), "{wrong}");
        }
    }

    #[test] // What was kept of filters went before what was tuned now.
    fn tuned_filters_go_before_those_that_are_kept() {
        let before = kept(&[("surf_size_ratio", "7"), ("block_bytes", "8192")]);
        let tune = |surf: &mut trommel_filters::SurfOptions| surf.size_ratio = 9;
        let options =
            Options::new().tune(tune).with_kept(&before, STORE.as_ref()).expect("they are options");
        assert_eq!(options.text_of("surf_size_ratio").expect("it is known"), "9");
        assert_eq!(options.block_bytes, 8192);
        let kept = Options::new().with_kept(&before, STORE.as_ref()).expect("they are options");
        assert_eq!(kept.text_of("surf_size_ratio").expect("it is known"), "7");
    }

    #[test]
    fn what_is_set_now_goes_before_what_is_kept() {
        let store = Options::new().bits_per_key(9.0).time_calls(true);
        let before =
            kept(&[("guard", "surf-real"), ("bits_per_key", "10"), ("block_bytes", "8192")]);
        let given = KeyspaceOptions::new().bits_per_key(14.0);
        let options = store.of_keyspace(&before, &given, STORE.as_ref()).expect("they are options");
        let all = (options.bits_per_key, options.block_bytes, options.time_calls);
        assert_eq!((all, options.guard.to_string().as_str()), ((14.0, 8192, true), "surf-real"));
        let new = given.options.to_keep(&before).expect("they have texts");
        assert_eq!(new, [("bits_per_key".to_string(), "14".to_string())]);
        let once = given.options.clone().for_now("bits-per-key");
        assert_eq!(once.to_keep(&before).expect("they have texts"), []);
        let default = store.with_kept(&before, STORE.as_ref()).expect("they are options");
        assert_eq!((default.bits_per_key, default.block_bytes), (9.0, 8192));
        assert_eq!(store.to_keep(&before).expect("they have texts")[0].0, "bits_per_key");
        for unknown in [("bits", "3"), ("guard", "of-another-program")] {
            let error = store
                .with_kept(&kept(&[unknown]), STORE.as_ref())
                .expect_err("it is not known here");
            assert!(error.to_string().contains("the store s keeps"), "{error}");
        }
    }
}
