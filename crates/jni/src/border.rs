//! The border: handles become references, results become what Java takes, and nothing unwinds past
//! it.
//! ```text
//! in     handle, array and length         0 or null where none may be: Failure
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

/// Exports a static method of `dev.trommel.Native`. The body gives an `Outcome`.
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
            // SAFETY: Java's machine calls with the environment of this thread.
            unsafe { $crate::border::call(env, |$env| -> $crate::error::Outcome<$out> { $body }) }
        }
    };
}

/// What is given over the border.
pub(crate) trait Given {
    /// As Java sees it.
    type Raw;
    /// Instead, beside an exception.
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

/// Requires: the environment of this thread.
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

/// What somebody panicked with.
fn message_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|payload| payload.downcast::<String>().map(|text| *text));
    text.unwrap_or_else(|payload| {
        // To drop it may panic, too.
        std::mem::forget(payload);
        "without a word".into()
    })
}

/// A handle as Java gives it.
#[repr(transparent)]
pub(crate) struct Handle<T>(jlong, PhantomData<*const T>);

impl<T> Handle<T> {
    /// The handle that `number_of` has made a number of.
    pub(crate) fn of_number(number: u64) -> Handle<T> {
        Handle(number as jlong, PhantomData)
    }

    fn pointer(&self) -> Outcome<*mut T> {
        let pointer = std::ptr::with_exposed_provenance_mut::<T>(self.0 as usize);
        if pointer.is_null() { Err(Failure::argument("the handle is 0")) } else { Ok(pointer) }
    }

    pub(crate) fn get(&self) -> Outcome<&T> {
        // SAFETY: lib.rs says what Java keeps of handles.
        self.pointer().map(|pointer| unsafe { &*pointer })
    }

    /// Requires: no other thread uses it meanwhile, as of rows and builders.
    pub(crate) fn get_mut(&mut self) -> Outcome<&mut T> {
        // SAFETY: lib.rs says what Java keeps of handles; required.
        self.pointer().map(|pointer| unsafe { &mut *pointer })
    }

    /// Takes it back. Requires: nobody uses it any more.
    pub(crate) fn take(self) -> Outcome<Box<T>> {
        // SAFETY: lib.rs says what Java keeps of handles; `Given` made it of a box; required.
        self.pointer().map(|pointer| unsafe { Box::from_raw(pointer) })
    }
}

/// The handle of a box, as a number within packed bytes.
pub(crate) fn number_of<T>(boxed: Box<T>) -> u64 {
    boxed.raw() as u64
}
