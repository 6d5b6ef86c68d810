//! Granted directories.
//!
//! Paths are resolved by the engine's WASI under a handle of the granted directory, one component
//! at a time, so that neither `..` nor a symbolic link leads out of it. On top of that: no hard
//! links, because a link outlives the grant; no symbolic links that lead out, because others may
//! follow them; no pipes, sockets or devices, because opening one can block a thread for good; and
//! what is written and created is counted.
//!
//! Every operation runs on a thread that may block, in a place that is counted: the engine's own
//! operation, on a table of its own that holds the descriptors it is about.

mod descriptor;
mod meter;
mod stream;

pub(crate) use meter::FileMeter;

use crate::grants::{Access, FileGrant};
use crate::state::Terms;
use meter::Forbidden;
use std::sync::Arc;
use stream::{CountedOutput, Gap};
use tokio::runtime::Handle;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::WasiCtx;
use wasmtime_wasi::filesystem::{Descriptor, FsPerms, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorType, ErrorCode, HostDescriptor as _, PathFlags,
};
use wasmtime_wasi::p2::{DynOutputStream, FsResult};

/// Opens the granted directories, once for all calls: what is later put in the place of one of them,
/// by a plugin that may write beside it or by anybody, is not what was granted. `Err` is the
/// directory and what is wrong with it.
pub(crate) fn open(grants: &[FileGrant]) -> Result<WasiFilesystemCtx, (&FileGrant, String)> {
    let mut builder = WasiCtx::builder();
    // The engine shall not hand operations to threads itself: they are on one already.
    builder.allow_blocking_current_thread(true);
    for grant in grants {
        let access = match grant.access {
            Access::ReadOnly => FsPerms::ReadOnly,
            Access::ReadWrite => FsPerms::ReadWrite,
        };
        builder
            .preopened_dir(&grant.host, &grant.guest, access)
            .map_err(|error| (grant, error.root_cause().to_string()))?;
    }
    Ok(std::mem::take(builder.build().filesystem()))
}

/// The engine's files behind the meter.
pub(crate) struct Files<'a> {
    files: WasiFilesystemCtxView<'a>,
    meter: Arc<FileMeter>,
    terms: Arc<Terms>,
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
        terms: Arc<Terms>,
    ) -> Self {
        Self { files, meter, terms }
    }

    /// One counted operation of the engine, on a thread that may block.
    async fn operate<R: Send + 'static, const N: usize>(
        &mut self,
        descriptors: [&Resource<Descriptor>; N],
        operation: impl AsyncFnOnce(&mut WasiFilesystemCtxView<'_>, Descriptors<N>) -> FsResult<R>
        + Send
        + 'static,
    ) -> FsResult<R> {
        self.meter.call();
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
        let started = self.terms.blocking.start(move || {
            let mut files = WasiFilesystemCtxView { ctx: &mut ctx, table: &mut table };
            Handle::current().block_on(operation(&mut files, copies))
        });
        started.await
    }

    /// An operation on paths with what it came to. Where it was refused for want of a grant, the receipt
    /// says which one: to the guest it is an error code among others.
    fn explained<R, const N: usize>(
        &self,
        paths: [(&Resource<Descriptor>, &str); N],
        result: FsResult<R>,
    ) -> FsResult<R> {
        let code = result.as_ref().err().and_then(|error| error.downcast_ref());
        if matches!(code, Some(ErrorCode::NotPermitted | ErrorCode::ReadOnly)) {
            let read_only = paths.iter().find(|(fd, _)| self.is_read_only(fd));
            let out = paths.iter().find(|(_, path)| leads_out(path));
            self.meter.refuse(match (out, read_only) {
                (None, Some((_, path))) => self.read_only_refusal(path),
                (out, _) => outside_refusal(out.or(paths.last()).map_or("", |(_, path)| path)),
            });
        }
        result
    }

    fn is_read_only(&self, fd: &Resource<Descriptor>) -> bool {
        let perms = match self.files.table.get(fd) {
            Ok(Descriptor::Dir(dir)) => dir.perms,
            Ok(Descriptor::File(file)) => file.perms,
            Err(_) => return false,
        };
        matches!(perms, FsPerms::ReadOnly)
    }

    fn read_only_refusal(&self, path: &str) -> String {
        let grants = self.terms.grants.files.iter();
        let read_only: Vec<_> = grants.filter(|grant| grant.access == Access::ReadOnly).collect();
        let (host, guest) = match &read_only[..] {
            [only] => (only.host.display().to_string(), only.guest.clone()),
            _ => ("DIR".into(), "/DIR".into()),
        };
        format!(
            "`{path}` is in a directory that is granted read-only; to allow it: \
             grants.files = [{{ host = {host:?}, guest = {guest:?}, access = \"read-write\" }}]"
        )
    }

    /// The engine's files, for what does not block.
    fn engine(&mut self) -> &mut WasiFilesystemCtxView<'a> {
        self.meter.call();
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
        gap: Option<Gap>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.files.table.delete(stream)?;
        let blocking = self.terms.blocking.clone();
        let counted: DynOutputStream =
            Box::new(CountedOutput::new(stream, gap, self.meter.clone(), blocking));
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
                self.meter.forbid(Forbidden::OddFile);
                Err(ErrorCode::NotPermitted.into())
            }
        }
    }
}

fn outside_refusal(path: &str) -> String {
    format!(
        "`{path}` leads out of the granted directory; to allow it, grant the directory that it is in: \
         grants.files = [{{ host = \"DIR\", guest = \"/DIR\" }}]"
    )
}

/// Whether a path, or a symbolic link with this target for whoever follows it, may lead out of the directory
/// that it is looked up in. Without `..` it cannot, wherever it is moved.
fn leads_out(path: &str) -> bool {
    path.starts_with('/') || path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::leads_out;

    #[test]
    fn paths_that_lead_out() {
        for (path, out) in [
            ("a", false),
            ("a/b", false),
            ("./a", false),
            ("..a", false),
            ("/a", true),
            ("../a", true),
            ("a/../b", true),
            ("..", true),
        ] {
            assert_eq!(leads_out(path), out, "{path}");
        }
    }
}
