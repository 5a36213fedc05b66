//! A store in memory behind a hook: each call is asked first, and may be refused.
#![allow(dead_code, reason = "each test that has this store uses a part of it")]

use std::fmt;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// What a store is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Put,
    /// An upload of many parts begins.
    Begin,
    Part,
    /// The parts become an object.
    Complete,
    /// They have become one. Refused: the answer is lost.
    Completed,
    Abort,
    Get,
    Delete,
    List,
    Copy,
}

impl Call {
    /// The answer of a service that does not do it.
    pub(crate) fn refused(self, why: &str) -> Error {
        Error::Generic { store: "faulty", source: format!("{self:?}: {why}").into() }
    }
}

type Hook = dyn Fn(Call) -> Result<()> + Send + Sync;

/// A call that gets an error is not done.
pub(crate) struct Faulty {
    inner: InMemory,
    hook: Arc<Hook>,
}

impl Faulty {
    pub(crate) fn new(hook: impl Fn(Call) -> Result<()> + Send + Sync + 'static) -> Faulty {
        Faulty { inner: InMemory::new(), hook: Arc::new(hook) }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        (self.hook)(Call::Put)?;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        (self.hook)(Call::Begin)?;
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(FaultyUpload { inner, hook: Arc::clone(&self.hook) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        (self.hook)(Call::Get)?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match (self.hook)(Call::Delete) {
            Ok(()) => self.inner.delete_stream(locations),
            Err(error) => Box::pin(futures_util::stream::once(async { Err(error) })),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match (self.hook)(Call::List) {
            Ok(()) => self.inner.list(prefix),
            Err(error) => Box::pin(futures_util::stream::once(async { Err(error) })),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        (self.hook)(Call::List)?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        (self.hook)(Call::Copy)?;
        self.inner.copy_opts(from, to, options).await
    }
}

struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    hook: Arc<Hook>,
}

impl fmt::Debug for FaultyUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyUpload").field(&self.inner).finish()
    }
}

#[async_trait::async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match (self.hook)(Call::Part) {
            Ok(()) => self.inner.put_part(data),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        (self.hook)(Call::Complete)?;
        let completed = self.inner.complete().await?;
        (self.hook)(Call::Completed)?;
        Ok(completed)
    }

    async fn abort(&mut self) -> Result<()> {
        (self.hook)(Call::Abort)?;
        self.inner.abort().await
    }
}
