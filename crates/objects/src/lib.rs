//! Backups of Trommel stores in any object store that the crate `object_store` supports.
//! ```text
//! put    up to 8 MiB: one request       more: a multipart upload in parts of 8 MiB, or larger
//!                                       ones beyond 78 GiB; they become the object all at once
//! get    ranges of 8 MiB, one after the other
//! ```
//! Invariant: an object exists as a whole, or not at all.

use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::runtime::{Builder, Runtime};

/// Bytes of a part of an object, and of each read. Services require at least 5 MiB.
const PART_BYTES: u64 = 8 << 20;
/// The most parts of an object that services accept.
const PARTS_MAX: u64 = 10_000;

/// Returns the part size in bytes for an object of this many bytes.
fn part_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(PARTS_MAX).max(PART_BYTES)
}

/// The objects of an object store below a prefix: see
/// [`Backups::new`](trommel::backup::Backups::new).
///
/// All calls block until the service answers. Threads of an asynchronous runtime must not make
/// them: use `spawn_blocking` there.
pub struct CloudObjects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
}

impl CloudObjects {
    /// Opens the objects below a prefix, such as `backups/words`. An empty prefix means all
    /// objects.
    ///
    /// # Errors
    /// `InvalidInput`: the prefix is no valid path. Otherwise: the system refuses resources that
    /// the runtime needs.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> io::Result<CloudObjects> {
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let prefix = Path::parse(prefix).map_err(wrong)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(CloudObjects { store, prefix, runtime })
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    fn wait<T>(&self, call: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(call).map_err(io::Error::from)
    }

    /// Stores an object of many parts. After an error, nothing is stored.
    fn put_parts(&self, path: &Path, bytes: u64, source: &mut dyn Read) -> io::Result<()> {
        let mut upload = self.wait(self.store.put_multipart(path))?;
        let mut left = bytes;
        let mut put_all = || {
            while left > 0 {
                let part = read(source, left.min(part_bytes(bytes)))?;
                left -= part.len() as u64;
                self.wait(upload.put_part(part.into()))?;
            }
            self.wait(upload.complete()).map(drop)
        };
        let put = put_all();
        if put.is_err() {
            let _ = self.wait(upload.abort());
        }
        put
    }
}

/// Reads the next bytes of a source.
fn read(source: &mut dyn Read, bytes: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut part = vec![0; len];
    source.read_exact(&mut part)?;
    Ok(part)
}

impl trommel::backup::ObjectStore for CloudObjects {
    fn place(&self) -> String {
        format!("{}, {}", self.store, self.prefix)
    }

    fn put(&self, name: &str, bytes: u64, source: &mut dyn Read) -> io::Result<()> {
        let path = self.path(name);
        if bytes > PART_BYTES {
            return self.put_parts(&path, bytes, source);
        }
        let payload = PutPayload::from(read(source, bytes)?);
        self.wait(self.store.put(&path, payload)).map(drop)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let path = self.path(name);
        let len = self.wait(self.store.head(&path))?.size;
        Ok(Box::new(Object { objects: self, path, len, at: 0, part: Bytes::new() }))
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, u64)>> {
        let all = self.wait(self.store.list(Some(&self.prefix)).try_collect::<Vec<_>>())?;
        let object = |meta: object_store::ObjectMeta| {
            let mut rest = meta.location.prefix_match(&self.prefix)?;
            let name = rest.next()?.as_ref().to_string();
            (rest.next().is_none() && name.starts_with(prefix)).then_some((name, meta.size))
        };
        Ok(all.into_iter().filter_map(object).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.wait(self.store.delete(&self.path(name))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for CloudObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloudObjects").field(&self.store).field(&self.prefix).finish()
    }
}

/// A reader of an object, from its start.
struct Object<'o> {
    objects: &'o CloudObjects,
    path: Path,
    len: u64,
    /// The offset behind the part in hand.
    at: u64,
    part: Bytes,
}

impl Read for Object<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.part.is_empty() && self.at < self.len {
            let range = self.at..self.len.min(self.at + PART_BYTES);
            let store = &self.objects.store;
            let part = self.objects.wait(store.get_range(&self.path, range.clone()))?;
            if part.len() as u64 != range.end - range.start {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (self.at, self.part) = (range.end, part);
        }
        let count = buffer.len().min(self.part.len());
        buffer[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_any_length_have_as_many_parts_as_services_take() {
        for bytes in [1, PART_BYTES, PART_BYTES * PARTS_MAX, PART_BYTES * PARTS_MAX + 1, 1 << 40] {
            let part = part_bytes(bytes);
            assert!(part >= PART_BYTES && bytes.div_ceil(part) <= PARTS_MAX, "{bytes}");
        }
    }
}
