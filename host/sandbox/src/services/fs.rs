//! Granted directories.
//!
//! Paths are resolved by the engine's WASI under a handle of the granted directory, one component
//! at a time, so that neither `..` nor a symbolic link leads out of it. On top of that: no hard
//! links, because a link outlives the grant; no pipes, sockets or devices, because opening one can
//! block a thread for good; and what is written is counted.
//!
//! Every operation runs on a thread that may block, in a place that is counted: the engine's own
//! operation, on a table of its own that holds the descriptors it is about.

mod stream;

use crate::blocking::Blocking;
use crate::grants::{Access, FileGrant};
use crate::limits::Limits;
use crate::receipt::Tally;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::{CountedInput, CountedOutput};
use tokio::runtime::Handle;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp,
    OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

/// Opens the granted directories for one call. What cannot be opened is missing, with a reason.
pub(crate) fn preopen(builder: &mut WasiCtxBuilder, grants: &[FileGrant]) -> Vec<String> {
    // The engine shall not hand operations to threads itself: they are on one already.
    builder.allow_blocking_current_thread(true);
    grants
        .iter()
        .filter_map(|grant| {
            let access = match grant.access {
                Access::ReadOnly => FsPerms::ReadOnly,
                Access::ReadWrite => FsPerms::ReadWrite,
            };
            let error = builder.preopened_dir(&grant.host, &grant.guest, access).err()?;
            Some(format!(
                "the granted directory {} could not be opened: {}",
                grant.guest,
                error.root_cause()
            ))
        })
        .collect()
}

/// What one call does with files. Shared with its streams.
#[derive(Debug)]
pub(crate) struct FileMeter {
    calls: AtomicU64,
    bytes: AtomicU64,
    written: AtomicU64,
    write_max: u64,
    created: AtomicU64,
    create_max: u64,
    over: AtomicU64,
    too_many: AtomicU64,
    links: AtomicU64,
    odd: AtomicU64,
}

impl FileMeter {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            write_max: limits.file_write_kib << 10,
            created: AtomicU64::new(0),
            create_max: limits.files_created,
            over: AtomicU64::new(0),
            too_many: AtomicU64::new(0),
            links: AtomicU64::new(0),
            odd: AtomicU64::new(0),
        })
    }

    /// Operations and bytes, and what was refused.
    pub(crate) fn bill(&self) -> (Tally, Vec<String>) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let refusals = [
            (
                count(&self.over),
                format!(
                    "a call may write {} KiB to files (limit file_write_kib)",
                    self.write_max >> 10
                ),
            ),
            (
                count(&self.too_many),
                format!(
                    "a call may create {} files, directories and links (limit files_created)",
                    self.create_max
                ),
            ),
            (count(&self.links), "a plugin may not create hard links".to_owned()),
            (count(&self.odd), "a plugin may open regular files and directories only".to_owned()),
        ];
        let refusals =
            refusals.into_iter().filter(|(times, _)| *times > 0).map(|(_, text)| text).collect();
        (Tally { calls: count(&self.calls), bytes: count(&self.bytes) }, refusals)
    }

    fn read(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts something before it is created. False if there are too many.
    fn create(&self) -> bool {
        let fits = self.created.fetch_add(1, Ordering::Relaxed) < self.create_max;
        if !fits {
            self.created.fetch_sub(1, Ordering::Relaxed);
            self.too_many.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// How much may still be written.
    fn room(&self) -> u64 {
        self.write_max.saturating_sub(self.written.load(Ordering::Relaxed))
    }

    /// Counts bytes before they are written. False if they are too many.
    fn write(&self, bytes: u64) -> bool {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.write_max;
        if fits {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.written.fetch_sub(bytes, Ordering::Relaxed);
            self.over.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }
}

/// The engine's files behind the meter.
pub(crate) struct Files<'a> {
    files: WasiFilesystemCtxView<'a>,
    meter: Arc<FileMeter>,
    blocking: Blocking,
}

pub(crate) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = Files<'a>;
}

/// The descriptors that an operation is about, in the table of its thread.
type Descriptors<const N: usize> = [Resource<Descriptor>; N];

impl<'a> Files<'a> {
    pub(crate) fn new(
        files: WasiFilesystemCtxView<'a>,
        meter: Arc<FileMeter>,
        blocking: Blocking,
    ) -> Self {
        Self { files, meter, blocking }
    }

    /// One counted operation of the engine, on a thread that may block.
    async fn operate<R: Send + 'static, const N: usize>(
        &mut self,
        descriptors: [&Resource<Descriptor>; N],
        operation: impl AsyncFnOnce(&mut WasiFilesystemCtxView<'_>, Descriptors<N>) -> FsResult<R>
        + Send
        + 'static,
    ) -> FsResult<R> {
        self.meter.calls.fetch_add(1, Ordering::Relaxed);
        let mut ctx = self.files.ctx.clone();
        let mut table = ResourceTable::new();
        let mut copies = Vec::with_capacity(N);
        for descriptor in descriptors {
            let descriptor = self.files.table.get(descriptor)?.clone();
            copies.push(table.push(descriptor)?);
        }
        let Ok(copies) = <Descriptors<N>>::try_from(copies) else {
            unreachable!("as many copies as descriptors")
        };
        let started = self.blocking.start(move || {
            let mut files = WasiFilesystemCtxView { ctx: &mut ctx, table: &mut table };
            Handle::current().block_on(operation(&mut files, copies))
        });
        started.await
    }

    /// The engine's files, for what does not block.
    fn engine(&mut self) -> &mut WasiFilesystemCtxView<'a> {
        self.meter.calls.fetch_add(1, Ordering::Relaxed);
        &mut self.files
    }

    fn spend(&self, bytes: u64) -> FsResult<()> {
        if self.meter.write(bytes) { Ok(()) } else { Err(ErrorCode::InsufficientSpace.into()) }
    }

    /// Counts what is about to be created, also if it then cannot be.
    fn spend_creation(&self) -> FsResult<()> {
        if self.meter.create() { Ok(()) } else { Err(ErrorCode::InsufficientSpace.into()) }
    }

    fn counted_output(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.files.table.delete(stream)?;
        let counted: DynOutputStream =
            Box::new(CountedOutput::new(stream, self.meter.clone(), self.blocking.clone()));
        Ok(self.files.table.push(counted)?)
    }

    /// Whether something is there. What is neither a file nor a directory is refused. Another
    /// process could put a pipe there in between; a plugin cannot, as it has no way to make one.
    async fn check_kind(
        &mut self,
        fd: &Resource<Descriptor>,
        follow: PathFlags,
        path: String,
    ) -> FsResult<bool> {
        let found =
            self.operate([fd], async move |files, [fd]| files.stat_at(fd, follow, path).await);
        let Ok(found) = found.await else {
            // Whatever is wrong, opening says it better.
            return Ok(false);
        };
        match found.type_ {
            DescriptorType::RegularFile
            | DescriptorType::Directory
            | DescriptorType::SymbolicLink => Ok(true),
            _ => {
                self.meter.odd.fetch_add(1, Ordering::Relaxed);
                Err(ErrorCode::NotPermitted.into())
            }
        }
    }
}

impl Host for Files<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.files.convert_error_code(error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.files.filesystem_error_code(error)
    }
}

impl HostDescriptor for Files<'_> {
    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        at: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| files.advise(fd, at, len, advice).await).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| files.sync_data(fd).await).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.operate([&fd], async move |files, [fd]| files.get_flags(fd).await).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.operate([&fd], async move |files, [fd]| files.get_type(fd).await).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let stat = self.operate([&fd], async |files, [fd]| files.stat(fd).await);
        let before = stat.await?.size;
        self.spend(size.saturating_sub(before))?;
        self.operate([&fd], async move |files, [fd]| files.set_size(fd, size).await).await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        a: NewTimestamp,
        m: NewTimestamp,
    ) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| files.set_times(fd, a, m).await).await
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: Filesize,
        at: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let (bytes, end) =
            self.operate([&fd], async move |files, [fd]| files.read(fd, len, at).await).await?;
        self.meter.read(bytes.len());
        Ok((bytes, end))
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        at: Filesize,
    ) -> FsResult<Filesize> {
        self.spend(bytes.len() as u64)?;
        self.operate([&fd], async move |files, [fd]| files.write(fd, bytes, at).await).await
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let entries = self
            .operate([&fd], async |files, [fd]| {
                let entries = files.read_directory(fd).await?;
                Ok(files.table.delete(entries)?)
            })
            .await?;
        Ok(self.files.table.push(entries)?)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| files.sync(fd).await).await
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.spend_creation()?;
        self.operate([&fd], async move |files, [fd]| files.create_directory_at(fd, path).await)
            .await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.operate([&fd], async move |files, [fd]| files.stat(fd).await).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.operate([&fd], async move |files, [fd]| files.stat_at(fd, flags, path).await).await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        a: NewTimestamp,
        m: NewTimestamp,
    ) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| {
            files.set_times_at(fd, flags, path, a, m).await
        })
        .await
    }

    async fn link_at(
        &mut self,
        _from: Resource<Descriptor>,
        _flags: PathFlags,
        _old: String,
        _to: Resource<Descriptor>,
        _new: String,
    ) -> FsResult<()> {
        self.meter.links.fetch_add(1, Ordering::Relaxed);
        Err(ErrorCode::NotPermitted.into())
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        follow: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let is_there = self.check_kind(&fd, follow, path.clone()).await?;
        if !is_there && how.contains(OpenFlags::CREATE) {
            self.spend_creation()?;
        }
        let opened = self
            .operate([&fd], async move |files, [fd]| {
                let opened = files.open_at(fd, follow, path, how, flags).await?;
                Ok(files.table.delete(opened)?)
            })
            .await?;
        Ok(self.files.table.push(opened)?)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.files, fd)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.operate([&fd], async move |files, [fd]| files.readlink_at(fd, path).await).await
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| files.remove_directory_at(fd, path).await)
            .await
    }

    async fn rename_at(
        &mut self,
        from: Resource<Descriptor>,
        old: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        self.operate([&from, &to], async move |files, [from, to]| {
            files.rename_at(from, old, to, new).await
        })
        .await
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        to: String,
        path: String,
    ) -> FsResult<()> {
        self.spend_creation()?;
        self.operate([&fd], async move |files, [fd]| files.symlink_at(fd, to, path).await).await
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.operate([&fd], async move |files, [fd]| files.unlink_file_at(fd, path).await).await
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        at: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        let stream = self.engine().read_via_stream(fd, at)?;
        let stream = self.files.table.delete(stream)?;
        let counted: DynInputStream =
            Box::new(CountedInput::new(stream, self.meter.clone(), self.blocking.clone()));
        Ok(self.files.table.push(counted)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        at: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.engine().write_via_stream(fd, at)?;
        self.counted_output(stream)
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.engine().append_via_stream(fd)?;
        self.counted_output(stream)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        let same = self.operate([&a, &b], async |files, [a, b]| {
            files.is_same_object(a, b).await.map_err(FsError::trap)
        });
        same.await.map_err(|error| wasmtime::Error::msg(error.to_string()))
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.operate([&fd], async move |files, [fd]| files.metadata_hash(fd).await).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.operate([&fd], async move |files, [fd]| files.metadata_hash_at(fd, flags, path).await)
            .await
    }
}

impl HostDirectoryEntryStream for Files<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.files.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.files, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_bounded() {
        let meter = FileMeter::new(&Limits { file_write_kib: 1, ..Limits::default() });
        assert!(meter.write(1_000));
        assert!(!meter.write(25));
        assert_eq!(meter.room(), 24);
        assert!(meter.write(24));
        let (tally, refusals) = meter.bill();
        assert_eq!((tally.bytes, refusals.len()), (1_024, 1));
    }
}
