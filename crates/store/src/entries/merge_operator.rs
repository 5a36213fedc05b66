//! Merge operators: they apply operands to a value, when it is read or when runs merge.
//! ```text
//! written   put 5      merge +1      merge +1          the value is not read
//! read      5, [+1, +1] --merge--> 7
//! runs      [+1, +1] --combine--> +2       5, [+2] --merge--> 7
//! ```
//! Invariant: a failing operator loses nothing. The reader gets an error, and merges keep the
//! operands.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::entries::entry::VALUE_BYTES_MAX;
use crate::error::{Error, Result};

/// Why an operator could not merge operands.
pub type MergeError = Box<dyn std::error::Error + Send + Sync>;

/// A function of a key's value and the operands merged into it, such as a counter or an appended
/// list. The store keeps its name: a key space uses one operator forever.
///
/// It must be pure, and the grouping of operands must not matter. For operands a and b, `merge(v,
/// [a, b])` equals `merge(merge(v, [a]), [b])` and `merge(v, [combine(a, b)])`. Reads and merges of
/// runs group operands arbitrarily. A panic counts as a failure.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// use trommel::merge_operators::{MergeError, MergeOperator};
///
/// struct Longest;
///
/// impl MergeOperator for Longest {
///     fn name(&self) -> &str {
///         "longest"
///     }
///
///     fn merge(
///         &self,
///         _key: &[u8],
///         existing: Option<&[u8]>,
///         operands: &[&[u8]],
///     ) -> Result<Vec<u8>, MergeError> {
///         let all = existing.into_iter().chain(operands.iter().copied());
///         Ok(all.max_by_key(|value| value.len()).unwrap_or_default().to_vec())
///     }
/// }
///
/// let options = trommel::Options::new().merge_operator(Longest);
/// let db = trommel::Db::open(dir.path().join("store"), options)?;
/// db.merge("drum", "turns")?;
/// db.merge("drum", "is quiet")?;
/// assert_eq!(db.get("drum")?.as_deref(), Some(&b"is quiet"[..]));
/// # Ok(())
/// # }
/// ```
pub trait MergeOperator: Send + Sync {
    /// The name that the store keeps, of 1 to 255 bytes. A different function needs a different
    /// name.
    fn name(&self) -> &str;

    /// Returns the value of a key after its operands. `existing` is the value before them, if any.
    /// `operands` has at least one, the oldest first.
    ///
    /// # Errors
    /// Reads of the key return [`Error::MergeFailed`] with this error. Nothing is lost.
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Vec<u8>, MergeError>;

    /// Returns one operand with the effect of two consecutive ones. `None`: there is no such
    /// operand, and both are kept. Combining saves space and read time until a merge reaches the
    /// value below.
    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// The name that stands for no operator.
const NONE: &str = "none";
/// The maximum length of a name in a manifest, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The merge operator option of a key space: none, an operator, or the name of an unavailable one.
#[derive(Clone, Default)]
pub struct OperatorOption {
    /// Empty: no operator.
    name: String,
    operator: Option<Arc<dyn MergeOperator>>,
}

impl OperatorOption {
    /// No operator.
    pub fn none() -> Self {
        OperatorOption::default()
    }

    /// The operator's name. `None`: no operator.
    pub fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&*self.name)
    }

    /// The operator. `None`: there is none, or it was set by a name that is not one of the store's
    /// own operators.
    pub fn operator(&self) -> Option<&Arc<dyn MergeOperator>> {
        self.operator.as_ref()
    }

    /// Whether the name is valid.
    pub(crate) fn is_named_well(&self) -> bool {
        let is_empty = self.name.is_empty() && self.operator.is_some();
        self.name.len() <= NAME_BYTES_MAX && self.name != NONE && !is_empty
    }
}

impl From<Arc<dyn MergeOperator>> for OperatorOption {
    fn from(operator: Arc<dyn MergeOperator>) -> Self {
        OperatorOption { name: operator.name().to_string(), operator: Some(operator) }
    }
}

impl<T: MergeOperator + 'static> From<T> for OperatorOption {
    fn from(operator: T) -> Self {
        OperatorOption::from(Arc::new(operator) as Arc<dyn MergeOperator>)
    }
}

/// Parses a name. The store's own operators are found by name.
impl FromStr for OperatorOption {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let operator: Arc<dyn MergeOperator> = match name {
            NONE => return Ok(OperatorOption::none()),
            "" => return Err("a name has 1 to 255 bytes; none says that there is none".into()),
            ADD_LE => Arc::new(Add::LITTLE_ENDIAN),
            ADD_BE => Arc::new(Add::BIG_ENDIAN),
            _ => match name.strip_prefix(CONCAT) {
                Some(separator) => Arc::new(Concat::new(separator)),
                None => return Ok(OperatorOption { name: name.to_string(), operator: None }),
            },
        };
        Ok(OperatorOption::from(operator))
    }
}

impl fmt::Display for OperatorOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or(NONE))
    }
}

impl fmt::Debug for OperatorOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A name identifies a function.
impl PartialEq for OperatorOption {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const ADD_LE: &str = "add-le";
const ADD_BE: &str = "add-be";

/// Adds 64-bit integers. A missing value counts as 0. Addition wraps around, so signed and unsigned
/// integers work alike. [`fetch_add`](crate::Keyspace::fetch_add) uses the little-endian one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Add {
    is_big_endian: bool,
}

impl Add {
    /// Adds little-endian integers: `add-le`.
    pub const LITTLE_ENDIAN: Add = Add { is_big_endian: false };
    /// Adds big-endian integers: `add-be`.
    pub const BIG_ENDIAN: Add = Add { is_big_endian: true };

    fn number(self, bytes: &[u8]) -> std::result::Result<u64, MergeError> {
        let bytes: [u8; 8] =
            bytes.try_into().map_err(|_| format!("{} bytes, and a number has 8", bytes.len()))?;
        Ok(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn bytes(self, number: u64) -> Vec<u8> {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }.to_vec()
    }
}

impl MergeOperator for Add {
    fn name(&self) -> &str {
        if self.is_big_endian { ADD_BE } else { ADD_LE }
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Vec<u8>, MergeError> {
        let mut all = existing.into_iter().chain(operands.iter().copied());
        let sum = all.try_fold(0u64, |sum, next| Ok(sum.wrapping_add(self.number(next)?)));
        sum.map(|sum| self.bytes(sum))
    }

    fn combine(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.merge(key, None, &[older, newer]).ok()
    }
}

const CONCAT: &str = "concat:";

/// Appends operands to the value, with a separator between. Its name is `concat:` and the
/// separator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concat {
    name: String,
}

impl Concat {
    /// Creates an operator with this separator, which may be empty.
    pub fn new(separator: impl AsRef<str>) -> Self {
        Concat { name: format!("{CONCAT}{}", separator.as_ref()) }
    }

    fn separator(&self) -> &[u8] {
        self.name.as_bytes().get(CONCAT.len()..).unwrap_or_default()
    }
}

impl MergeOperator for Concat {
    fn name(&self) -> &str {
        &self.name
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Vec<u8>, MergeError> {
        let all: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Ok(all.join(self.separator()))
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].join(self.separator()))
    }
}

/// Applies the operator to operands, the oldest first. Returns the reason if it fails. A panic is a
/// failure.
pub(crate) fn merged(
    operator: &dyn MergeOperator,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> std::result::Result<Vec<u8>, String> {
    let call = || operator.merge(key, existing, operands).map_err(|error| error.to_string());
    let made = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        // Dropping the payload may panic, too.
        std::mem::forget(payload);
        Err("it has panicked".into())
    })?;
    match made.len() <= VALUE_BYTES_MAX {
        true => Ok(made),
        false => Err(format!("it makes {} bytes, of {VALUE_BYTES_MAX} at most", made.len())),
    }
}

/// Combines two operands. `None`: the operator cannot, or it panicked.
pub(crate) fn combined(
    operator: &dyn MergeOperator,
    key: &[u8],
    older: &[u8],
    newer: &[u8],
) -> Option<Vec<u8>> {
    let call = || operator.combine(key, older, newer);
    catch_unwind(AssertUnwindSafe(call)).map_err(std::mem::forget).ok().flatten()
}

/// Merges for a read, where a missing operator is an error too. The store's path and the key
/// space's number are for errors.
pub(crate) fn merged_for_reader(
    operator: Option<&Arc<dyn MergeOperator>>,
    (store, keyspace): (&Path, u32),
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Vec<u8>> {
    let path = || store.to_path_buf();
    let Some(operator) = operator else {
        return Err(Error::NoMergeOperator { path: path(), keyspace, key: key.to_vec() });
    };
    merged(&**operator, key, existing, operands).map_err(|what| {
        let what = format!("{}: {what}", operator.name()).into();
        Error::MergeFailed { path: path(), keyspace, key: key.into(), what }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_group_operands_as_it_comes() {
        let comma = Concat::new(",");
        let all: [(&dyn MergeOperator, [&[u8]; 4]); 3] = [
            (&Add::LITTLE_ENDIAN, [&[1; 8], &[255; 8], &[7; 8], &[9; 8]]),
            (&Add::BIG_ENDIAN, [&[1; 8], &[255; 8], &[7; 8], &[9; 8]]),
            (&comma, [b"a", b"", b"bc", b"d"]),
        ];
        for (operator, [value, one, two, three]) in all {
            for existing in [None, Some(value)] {
                let at_once = merged(operator, b"k", existing, &[one, two, three]).expect("merges");
                let first = merged(operator, b"k", existing, &[one]).expect("merges");
                let steps = merged(operator, b"k", Some(&first), &[two, three]).expect("merges");
                let rest = combined(operator, b"k", two, three).expect("combines");
                let both = merged(operator, b"k", existing, &[one, &rest]).expect("merges");
                assert_eq!((&at_once, &at_once), (&steps, &both), "{}", operator.name());
            }
        }
    }

    #[test]
    fn an_operator_that_comes_with_the_store_is_known_by_its_name() {
        for operator in
            [Add::LITTLE_ENDIAN.into(), Add::BIG_ENDIAN.into(), Concat::new(", ").into()]
        {
            let OperatorOption { name, .. } = &operator;
            let read: OperatorOption = name.parse().expect("a name");
            assert_eq!(read, operator);
            assert_eq!(read.operator().expect("it is known").name(), name);
        }
        let other: OperatorOption = "of-another-program".parse().expect("a name");
        assert!(other.operator().is_none() && other.name() == Some("of-another-program"));
        assert_eq!("none".parse(), Ok(OperatorOption::none()));
        assert!("".parse::<OperatorOption>().is_err());
    }

    #[test]
    fn a_number_of_another_length_is_refused() {
        let failed = merged(&Add::LITTLE_ENDIAN, b"k", Some(b"seven"), &[&[1; 8]]);
        assert_eq!(failed, Err("5 bytes, and a number has 8".into()));
        assert_eq!(Add::LITTLE_ENDIAN.combine(b"k", b"", &[1; 8]), None);
    }
}
