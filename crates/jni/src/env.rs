//! The functions of the JVM that this library calls.
//! ```text
//! byte[] -- GetByteArrayRegion --> Room (on the stack if it is short)
//! &[u8]  -- NewByteArray, SetByteArrayRegion --> byte[]
//! ```
//! All calls use the functions of JNI itself. Wrappers look for an exception after each call, and
//! note which thread is attached. Both cost more than a miss in the store.
//!
//! Invariant: while an exception is pending, only functions are called that allow it.

use std::ffi::CStr;
use std::ptr::null_mut;

use jni_sys::{
    JNIEnv, JNINativeInterface__1_1, jbyteArray, jint, jlong, jlongArray, jobject, jvalue,
};

use crate::bytes::Room;
use crate::error::{Failure, Outcome};

/// The class whose method `of` makes exceptions.
const FAILURES: &CStr = c"dev/trommel/Failures";

/// The JNI environment of the calling thread.
#[derive(Clone, Copy)]
pub(crate) struct Env(*mut JNIEnv);

impl Env {
    /// Requires: `env` is the environment of this thread for as long as the result is used.
    pub(crate) unsafe fn new(env: *mut JNIEnv) -> Env {
        Env(env)
    }

    fn interface(&self) -> &JNINativeInterface__1_1 {
        // SAFETY: required by `new`; each version of the interface begins with the oldest one.
        unsafe { &(**self.0).v1_1 }
    }

    /// Copies an array of `len` bytes.
    pub(crate) fn bytes(self, room: &mut Room, array: jbyteArray, len: jint) -> Outcome<&[u8]> {
        if array.is_null() {
            return Err(Failure::argument("an array is null"));
        }
        let bytes = room.make(len)?;
        // SAFETY: it is an array, and there is room for `len` bytes. A wrong length makes an
        // exception.
        unsafe {
            (self.interface().GetByteArrayRegion)(self.0, array, 0, len, bytes.as_mut_ptr().cast());
        }
        Ok(bytes)
    }

    /// Like [`Env::bytes`], but null becomes None.
    pub(crate) fn some_bytes(
        self,
        room: &mut Room,
        array: jbyteArray,
        len: jint,
    ) -> Outcome<Option<&[u8]>> {
        if array.is_null() { Ok(None) } else { self.bytes(room, array, len).map(Some) }
    }

    /// Makes a new array.
    pub(crate) fn new_bytes(self, bytes: &[u8]) -> Outcome<jbyteArray> {
        let Ok(len) = jint::try_from(bytes.len()) else {
            let message = format!("{} bytes are more than an array of Java can have", bytes.len());
            return Err(Failure::argument(message));
        };
        // SAFETY: no exception is pending.
        let array = unsafe { (self.interface().NewByteArray)(self.0, len) };
        if array.is_null() {
            return Err(Failure::Pending);
        }
        // SAFETY: the new array and the slice have `len` bytes each.
        unsafe {
            (self.interface().SetByteArrayRegion)(self.0, array, 0, len, bytes.as_ptr().cast());
        }
        Ok(array)
    }

    /// Makes a new array, or null of None.
    pub(crate) fn new_bytes_if(self, bytes: Option<&[u8]>) -> Outcome<jbyteArray> {
        bytes.map_or(Ok(null_mut()), |bytes| self.new_bytes(bytes))
    }

    /// Copies an array of numbers; null becomes none.
    pub(crate) fn numbers(self, array: jlongArray) -> Outcome<Vec<jlong>> {
        if array.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: it is an array.
        let len = unsafe { (self.interface().GetArrayLength)(self.0, array) };
        let mut numbers = vec![0; usize::try_from(len).unwrap_or_default()];
        // SAFETY: both have room for `len` numbers.
        unsafe {
            (self.interface().GetLongArrayRegion)(self.0, array, 0, len, numbers.as_mut_ptr());
        }
        Ok(numbers)
    }

    /// Returns the address of byte `at` of a direct buffer.
    fn direct(self, buffer: jobject, at: jint) -> Outcome<*mut u8> {
        if buffer.is_null() {
            return Err(Failure::argument("a buffer is null"));
        }
        // SAFETY: it is an object. Direct buffers came with version 1.4, and Java 17 is required.
        let address = unsafe { ((**self.0).v1_4.GetDirectBufferAddress)(self.0, buffer) };
        let at = usize::try_from(at).map_err(|_| Failure::argument("a place below 0"))?;
        if address.is_null() {
            return Err(Failure::argument("a buffer is not direct, or has no memory"));
        }
        Ok(address.cast::<u8>().wrapping_add(at))
    }

    /// Copies from a direct buffer, which another thread may change meanwhile.
    pub(crate) fn direct_bytes(
        self,
        room: &mut Room,
        buffer: jobject,
        at: jint,
        len: jint,
    ) -> Outcome<&[u8]> {
        let bytes = room.make(len)?;
        if !bytes.is_empty() {
            let from = self.direct(buffer, at)?;
            // SAFETY: Java passes an offset and a length within the buffer, which lives as long as
            // the call. The room is memory of this thread.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        }
        Ok(bytes)
    }

    /// Copies to a direct buffer. Requires: the buffer has room for the bytes from `at` on.
    pub(crate) fn fill_direct(self, buffer: jobject, at: jint, bytes: &[u8]) -> Outcome<()> {
        if !bytes.is_empty() {
            let to = self.direct(buffer, at)?;
            // SAFETY: required; the store's bytes do not overlap the buffer.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        Ok(())
    }

    /// Calls `byte[] next()` of an object. None: null was returned, so there are no more pieces.
    pub(crate) fn next_piece(self, feeder: jobject) -> Outcome<Option<Vec<u8>>> {
        let interface = self.interface();
        // SAFETY: no exception is pending. The object exists, and has the method, or an exception
        // is made.
        let array = unsafe {
            let class = (interface.GetObjectClass)(self.0, feeder);
            let method = (interface.GetMethodID)(self.0, class, c"next".as_ptr(), c"()[B".as_ptr());
            (interface.DeleteLocalRef)(self.0, class);
            if method.is_null() {
                return Err(Failure::Pending);
            }
            (interface.CallObjectMethodA)(self.0, feeder, method, std::ptr::null())
        };
        if self.has_exception() {
            return Err(Failure::Pending);
        }
        if array.is_null() {
            return Ok(None);
        }
        // SAFETY: it is an array.
        let len = unsafe { (interface.GetArrayLength)(self.0, array) };
        let mut room = Room::new();
        let piece = self.bytes(&mut room, array, len)?.to_vec();
        // SAFETY: it is a local reference of this call, and is not used after this.
        unsafe { (interface.DeleteLocalRef)(self.0, array) };
        Ok(Some(piece))
    }

    fn has_exception(self) -> bool {
        // SAFETY: it may be called while an exception is pending. It came with version 1.2.
        unsafe { ((**self.0).v1_2.ExceptionCheck)(self.0) }
    }

    /// Makes Java throw the exception of a failure when the call returns.
    pub(crate) fn throw(self, failure: Failure) {
        let Failure::Told { code, message, key, keyspace } = failure else { return };
        // One may be pending already, as after a panic in work that an exception of Java had ended.
        // It is the cause, so it stays.
        if self.has_exception() {
            return;
        }
        // A failure here has made an exception of its own, which is thrown instead.
        let _ = self.throw_told(code, &message, key.as_deref(), keyspace);
    }

    fn throw_told(self, code: u32, message: &str, key: Option<&[u8]>, of: u32) -> Outcome<()> {
        let (interface, message) = (self.interface(), self.new_bytes(message.as_bytes())?);
        let key = self.new_bytes_if(key)?;
        let signature = c"(I[B[BI)Ljava/lang/Throwable;";
        let arguments = [
            jvalue { i: code as jint },
            jvalue { l: message },
            jvalue { l: key },
            jvalue { i: of as jint },
        ];
        // SAFETY: no exception is pending before each call, and the arguments match the signatures.
        unsafe {
            let class = (interface.FindClass)(self.0, FAILURES.as_ptr());
            if class.is_null() {
                return Err(Failure::Pending);
            }
            let (name, signature) = (c"of".as_ptr(), signature.as_ptr());
            let method = (interface.GetStaticMethodID)(self.0, class, name, signature);
            if method.is_null() {
                return Err(Failure::Pending);
            }
            let arguments = arguments.as_ptr();
            let thrown = (interface.CallStaticObjectMethodA)(self.0, class, method, arguments);
            if !self.has_exception() && !thrown.is_null() {
                (interface.Throw)(self.0, thrown);
            }
        }
        Ok(())
    }
}
