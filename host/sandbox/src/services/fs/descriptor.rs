//! The operations on files, one by one: the engine's own, after what is forbidden and what is counted.

use super::meter::Forbidden;
use super::stream::{CountedInput, Gap};
use super::{Files, leads_out};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp,
    OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};

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
        let mut more = bytes.len() as u64;
        if at > 0 {
            // What lies between the end and the first byte is as much as if it had been written.
            let stat = self.operate([&fd], async |files, [fd]| files.stat(fd).await);
            more = more.saturating_add(at.saturating_sub(stat.await?.size));
        }
        self.spend(more)?;
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
        let at = path.clone();
        let made =
            self.operate([&fd], async move |files, [fd]| files.create_directory_at(fd, at).await);
        let made = made.await;
        self.explained([(&fd, &path)], made)
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
        let at = path.clone();
        let stat = self.operate([&fd], async move |files, [fd]| files.stat_at(fd, flags, at).await);
        let stat = stat.await;
        self.explained([(&fd, &path)], stat)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        a: NewTimestamp,
        m: NewTimestamp,
    ) -> FsResult<()> {
        let at = path.clone();
        let set = self
            .operate([&fd], async move |files, [fd]| files.set_times_at(fd, flags, at, a, m).await);
        let set = set.await;
        self.explained([(&fd, &path)], set)
    }

    async fn link_at(
        &mut self,
        _from: Resource<Descriptor>,
        _flags: PathFlags,
        _old: String,
        _to: Resource<Descriptor>,
        _new: String,
    ) -> FsResult<()> {
        self.meter.forbid(Forbidden::HardLink);
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
        let at = path.clone();
        let opened = self.operate([&fd], async move |files, [fd]| {
            let opened = files.open_at(fd, follow, at, how, flags).await?;
            Ok(files.table.delete(opened)?)
        });
        let opened = opened.await;
        let opened = self.explained([(&fd, &path)], opened)?;
        Ok(self.files.table.push(opened)?)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.files, fd)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let at = path.clone();
        let link = self.operate([&fd], async move |files, [fd]| files.readlink_at(fd, at).await);
        let link = link.await;
        self.explained([(&fd, &path)], link)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let at = path.clone();
        let gone =
            self.operate([&fd], async move |files, [fd]| files.remove_directory_at(fd, at).await);
        let gone = gone.await;
        self.explained([(&fd, &path)], gone)
    }

    async fn rename_at(
        &mut self,
        from: Resource<Descriptor>,
        old: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        let (old_at, new_at) = (old.clone(), new.clone());
        let renamed = self.operate([&from, &to], async move |files, [from, to]| {
            files.rename_at(from, old_at, to, new_at).await
        });
        let renamed = renamed.await;
        self.explained([(&from, &old), (&to, &new)], renamed)
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        to: String,
        path: String,
    ) -> FsResult<()> {
        if leads_out(&to) {
            self.meter.forbid(Forbidden::LinkOut);
            return Err(ErrorCode::NotPermitted.into());
        }
        self.spend_creation()?;
        let at = path.clone();
        let made = self.operate([&fd], async move |files, [fd]| files.symlink_at(fd, to, at).await);
        let made = made.await;
        self.explained([(&fd, &path)], made)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let at = path.clone();
        let gone = self.operate([&fd], async move |files, [fd]| files.unlink_file_at(fd, at).await);
        let gone = gone.await;
        self.explained([(&fd, &path)], gone)
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        at: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        let stream = self.engine().read_via_stream(fd, at)?;
        let stream = self.files.table.delete(stream)?;
        let counted: DynInputStream =
            Box::new(CountedInput::new(stream, self.meter.clone(), self.terms.blocking.clone()));
        Ok(self.files.table.push(counted)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        at: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = match self.files.table.get(&fd)? {
            Descriptor::File(file) if at > 0 => Some(file.file.clone()),
            _ => None,
        };
        let stream = self.engine().write_via_stream(fd, at)?;
        self.counted_output(stream, file.map(|file| Gap { file, at }))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.engine().append_via_stream(fd)?;
        self.counted_output(stream, None)
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
