//! The border: handles become references, results become Java's types, and no panic unwinds past
//! it.
//! ```text
//! in     handle, array and length         0 or null where it is not allowed: Failure
//! out    number, array, Box<T> -> handle      Failure -> 0 or null, and an exception
//! ```
//! Invariant: each exported function is made by `native!`.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use jni_sys::{JNIEnv, jboolean, jbyteArray, jint, jlong};

use crate::env::Env;
use crate::error::{Failure, Outcome};

/// Exports a static method of `dev.trommel.Native`. Its body evaluates to an `Outcome`.
macro_rules! native {
    (
        $(#[$attribute:meta])*
        $java:literal fn $name:ident($env:ident $(, $argument:ident: $type:ty)* $(,)?) -> $out:ty
        $body:block
    ) => {
        $(#[$attribute])*
        #[unsafe(export_name = concat!("Java_dev_trommel_Native_", $java))]
        extern "system" fn $name(
            env: *mut jni_sys::JNIEnv,
            _class: jni_sys::jclass,
            $($argument: $type),*
        ) -> <$out as $crate::border::Given>::Raw {
            // SAFETY: the JVM calls with the environment of this thread.
            unsafe { $crate::border::call(env, |$env| -> $crate::error::Outcome<$out> { $body }) }
        }
    };
}

/// A type of results that cross the border.
pub(crate) trait Given {
    /// The type that Java sees.
    type Raw;
    /// What is returned beside an exception.
    const NONE: Self::Raw;

    fn raw(self) -> Self::Raw;
}

macro_rules! given_as_it_is {
    ($($type:ty = $none:expr),+) => {
        $(impl Given for $type {
            type Raw = $type;
            const NONE: $type = $none;

            fn raw(self) -> $type {
                self
            }
        })+
    };
}

given_as_it_is!(() = (), jint = 0, jlong = 0, jboolean = false, jbyteArray = null_mut());

impl<T> Given for Box<T> {
    type Raw = jlong;
    const NONE: jlong = 0;

    fn raw(self) -> jlong {
        Box::into_raw(self).expose_provenance() as jlong
    }
}

/// Runs the body of an exported function. A failure or a panic becomes an exception.
///
/// Requires: `env` is the environment of this thread.
pub(crate) unsafe fn call<T: Given>(
    env: *mut JNIEnv,
    body: impl FnOnce(Env) -> Outcome<T>,
) -> T::Raw {
    // SAFETY: required.
    let env = unsafe { Env::new(env) };
    let outcome = catch_unwind(AssertUnwindSafe(|| body(env)));
    let outcome = outcome.unwrap_or_else(|payload| Err(Failure::panicked(&message_of(payload))));
    match outcome {
        Ok(given) => given.raw(),
        Err(failure) => {
            env.throw(failure);
            T::NONE
        }
    }
}

/// The message of a panic.
fn message_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|payload| payload.downcast::<String>().map(|text| *text));
    text.unwrap_or_else(|payload| {
        // Dropping it may panic, too.
        std::mem::forget(payload);
        "without a word".into()
    })
}

/// A handle as Java passes it.
#[repr(transparent)]
pub(crate) struct Handle<T>(jlong, PhantomData<*const T>);

impl<T> Handle<T> {
    /// Makes a handle of a number that `number_of` has returned.
    pub(crate) fn of_number(number: u64) -> Handle<T> {
        Handle(number as jlong, PhantomData)
    }

    fn pointer(&self) -> Outcome<*mut T> {
        let pointer = std::ptr::with_exposed_provenance_mut::<T>(self.0 as usize);
        if pointer.is_null() { Err(Failure::argument("the handle is 0")) } else { Ok(pointer) }
    }

    pub(crate) fn get(&self) -> Outcome<&T> {
        // SAFETY: lib.rs says what Java guarantees for handles.
        self.pointer().map(|pointer| unsafe { &*pointer })
    }

    /// Requires: no other thread uses the object meanwhile, as is the rule for rows and builders.
    pub(crate) fn get_mut(&mut self) -> Outcome<&mut T> {
        // SAFETY: lib.rs says what Java guarantees for handles, and the rest is required.
        self.pointer().map(|pointer| unsafe { &mut *pointer })
    }

    /// Takes the object back. Requires: nobody uses it any more.
    pub(crate) fn take(self) -> Outcome<Box<T>> {
        // SAFETY: lib.rs says what Java guarantees for handles. `Given` made it of a box. Required.
        self.pointer().map(|pointer| unsafe { Box::from_raw(pointer) })
    }
}

/// Makes a handle of a box, as a number that fits into packed bytes.
pub(crate) fn number_of<T>(boxed: Box<T>) -> u64 {
    boxed.raw() as u64
}
