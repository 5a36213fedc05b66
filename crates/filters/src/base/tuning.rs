//! Further options of filters: values of any type, at most one per type.
//! ```text
//! set(RosettaPlan { range_bits: 10, .. })        keeps the value, as it is not the default
//! get::<RosettaPlan>()  -> that value            get::<PrefixRule>()  -> its default
//! ```
//! So a kind of filter brings its own option type. Code that stores or passes a tuning need not
//! know that type.
//!
//! Invariant: a value equal to its type's default is not kept, so equal tunings compare equal.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::fmt::Debug;

/// The options of one or several kinds of filters.
pub trait Tuning: Any + Clone + Debug + Default + PartialEq + Send + Sync {
    /// An invalid option and what is wrong with it. None: all are valid.
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// An object-safe form of [`Tuning`].
trait AnyTuning: Any + Debug + Send + Sync {
    fn problem(&self) -> Option<(&'static str, &'static str)>;
    fn equals(&self, other: &dyn Any) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Tuning> AnyTuning for T {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        Tuning::problem(self)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Options of filters beyond bits per key. Each kind reads the value of its own option type.
#[derive(Clone, Debug, Default)]
pub struct FilterTuning(Vec<Arc<dyn AnyTuning>>);

impl FilterTuning {
    /// A tuning with all defaults.
    pub fn new() -> Self {
        FilterTuning::default()
    }

    /// Returns the value of type `T`, or its default if none was set.
    pub fn get<T: Tuning>(&self) -> T {
        self.given::<T>().unwrap_or_default()
    }

    /// Returns the value of type `T` if one was set that is not the default.
    pub fn given<T: Tuning>(&self) -> Option<T> {
        self.0.iter().find_map(|value| value.as_any().downcast_ref::<T>()).cloned()
    }

    /// Sets the value of type `T`.
    pub fn set<T: Tuning>(&mut self, value: T) {
        self.0.retain(|other| other.as_any().type_id() != TypeId::of::<T>());
        if value != T::default() {
            self.0.push(Arc::new(value));
        }
    }

    /// Changes the value of type `T` in place.
    pub fn change<T: Tuning>(&mut self, change: impl FnOnce(&mut T)) {
        let mut value = self.get::<T>();
        change(&mut value);
        self.set(value);
    }

    /// Returns this tuning with `value`.
    #[must_use]
    pub fn with<T: Tuning>(mut self, value: T) -> Self {
        self.set(value);
        self
    }

    /// The first invalid option and what is wrong with it. None: all are valid.
    pub fn problem(&self) -> Option<(&'static str, &'static str)> {
        self.0.iter().find_map(|value| value.problem())
    }
}

impl PartialEq for FilterTuning {
    fn eq(&self, other: &Self) -> bool {
        let has = |value: &Arc<dyn AnyTuning>| other.0.iter().any(|it| it.equals(value.as_any()));
        self.0.len() == other.0.len() && self.0.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Sieve(u8);

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Drum(u8);

    impl Tuning for Sieve {
        fn problem(&self) -> Option<(&'static str, &'static str)> {
            (self.0 > 9).then_some(("sieve", "must be 0 to 9"))
        }
    }

    impl Tuning for Drum {}

    #[test]
    fn each_type_has_one_value() {
        let mut tuning = FilterTuning::new();
        assert_eq!(tuning.get::<Sieve>(), Sieve(0));
        tuning.set(Sieve(3));
        tuning.set(Drum(4));
        tuning.set(Sieve(5));
        assert_eq!((tuning.get::<Sieve>(), tuning.get::<Drum>()), (Sieve(5), Drum(4)));
        let other = FilterTuning::new().with(Drum(4)).with(Sieve(5));
        assert_eq!(tuning, other, "in whatever order they were set");
        assert_ne!(tuning, other.clone().with(Drum(5)));
        assert_ne!(tuning, other.with(Drum(0)));
        assert_eq!(tuning.with(Drum(0)).with(Sieve(0)), FilterTuning::default());
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert_eq!(FilterTuning::new().with(Sieve(9)).with(Drum(200)).problem(), None);
        let wrong = FilterTuning::new().with(Sieve(10)).problem();
        assert_eq!(wrong, Some(("sieve", "must be 0 to 9")));
    }
}
