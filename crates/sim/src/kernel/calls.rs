//! The system calls on names and open files, as methods of [`Sys`].

use fairlift_core::Op;

use super::files::{FileId, Layout};
use super::vfs::{Errno, Fallocate, Fd, OpenFile, OpenFlags, OpenSync};
use super::{DirectIo, Kernel, ReadaheadState};
use crate::anatomy::Call;
use crate::engine::{OpId, Sys};

impl Sys {
    /// `open`: a file by its name.
    ///
    /// # Errors
    /// [`Errno::NoEntry`] without `O_CREAT`, [`Errno::IsDirectory`] when a directory is to be written.
    pub async fn open(&self, path: &str, flags: OpenFlags) -> Result<Fd, Errno> {
        self.call_cost().await;
        let (found, directory, ext) = {
            let kernel = &self.machine.borrow().kernel;
            (kernel.files.find(path), kernel.is_directory(path), kernel.ext.is_some())
        };
        if directory {
            return Err(Errno::IsDirectory);
        }
        let file = match found {
            Some(file) => file,
            None if !flags.create => return Err(Errno::NoEntry),
            None if ext => self.ext_create(path).await?,
            None => {
                let kernel = &mut self.machine.borrow_mut().kernel;
                kernel.create_file(path, 0, Layout::Growing).map_err(|_| Errno::NoSpace)?
            }
        };
        let fd = {
            let kernel = &mut self.machine.borrow_mut().kernel;
            kernel.files.get_mut(file).opens += 1;
            kernel.vfs.add(OpenFile { file, flags, position: 0, readahead: ReadaheadState::default() })
        };
        // A file that was just made has nothing to cut.
        if flags.truncate && found.is_some() {
            self.truncate(file, 0).await;
        }
        Ok(fd)
    }

    /// `creat`: open for writing, made or cut to nothing.
    ///
    /// # Errors
    /// As [`Sys::open`].
    pub async fn creat(&self, path: &str) -> Result<Fd, Errno> {
        self.open(path, OpenFlags::WRONLY.create().truncate()).await
    }

    /// `close`. Writes nothing.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub async fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.call_cost().await;
        let file = {
            let kernel = &mut self.machine.borrow_mut().kernel;
            let file = kernel.vfs.remove(fd)?.file;
            kernel.files.get_mut(file).opens -= 1;
            file
        };
        if self.is_ext(file) {
            self.ext_release(file).await;
        }
        Ok(())
    }

    /// `read` at the file position; returns the bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub async fn read(&self, fd: Fd, bytes: u64) -> Result<u64, Errno> {
        let position = self.open_file(fd)?.position;
        let read = self.pread(fd, position, bytes).await?;
        self.lseek(fd, position + read)?;
        Ok(read)
    }

    /// `write` at the file position.
    ///
    /// # Errors
    /// [`Errno::BadFd`], [`Errno::NoSpace`].
    pub async fn write(&self, fd: Fd, bytes: u64) -> Result<u64, Errno> {
        let position = self.open_file(fd)?.position;
        let written = self.pwrite(fd, position, bytes).await?;
        self.lseek(fd, position + written)?;
        Ok(written)
    }

    /// `pread`: `bytes` from `offset` on, as far as the file goes.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub async fn pread(&self, fd: Fd, offset: u64, bytes: u64) -> Result<u64, Errno> {
        self.call_cost().await;
        let open = self.open_file(fd)?;
        if !open.flags.read {
            return Err(Errno::BadFd);
        }
        let bytes = bytes.min(self.size_of(open.file).saturating_sub(offset));
        if bytes == 0 {
            return Ok(0);
        }
        if open.flags.direct {
            self.direct(DirectIo {
                op: Op::Read,
                file: open.file,
                offset,
                bytes,
                ioprio: None,
                through: false,
            })
            .await?;
        } else {
            let mut readahead = open.readahead;
            self.read_file(open.file, offset, bytes, &mut readahead).await;
            self.machine.borrow_mut().kernel.vfs.get(fd)?.readahead = readahead;
        }
        Ok(bytes)
    }

    /// `pwrite`: `bytes` from `offset` on; the file grows as needed.
    ///
    /// # Errors
    /// [`Errno::BadFd`], [`Errno::NoSpace`].
    pub async fn pwrite(&self, fd: Fd, offset: u64, bytes: u64) -> Result<u64, Errno> {
        let open = self.open_file(fd)?;
        if open.flags.sync == OpenSync::None {
            return self.write_to(open, offset, bytes).await;
        }
        self.begin_call(Call::SyncWrite);
        let written = self.write_to(open, offset, bytes).await;
        self.end_call();
        written
    }

    async fn write_to(&self, open: OpenFile, offset: u64, bytes: u64) -> Result<u64, Errno> {
        self.call_cost().await;
        if !open.flags.write {
            return Err(Errno::BadFd);
        }
        if bytes == 0 {
            return Ok(0);
        }
        if open.flags.direct {
            self.direct(DirectIo {
                op: Op::Write,
                file: open.file,
                offset,
                bytes,
                ioprio: None,
                through: open.flags.sync != OpenSync::None && self.writes_through(open.file),
            })
            .await?;
        } else {
            self.write_file(open.file, offset, bytes).await?;
        }
        if open.flags.sync != OpenSync::None {
            self.sync_file(open.file, open.flags.sync == OpenSync::DataSync).await;
        }
        Ok(bytes)
    }

    /// `lseek` to `offset` from the start.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub fn lseek(&self, fd: Fd, offset: u64) -> Result<(), Errno> {
        self.machine.borrow_mut().kernel.vfs.get(fd)?.position = offset;
        Ok(())
    }

    /// `fsync`.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub async fn fsync(&self, fd: Fd) -> Result<(), Errno> {
        self.begin_call(Call::Fsync);
        let synced = self.sync_fd(fd, false).await;
        self.end_call();
        synced
    }

    /// `fdatasync`.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub async fn fdatasync(&self, fd: Fd) -> Result<(), Errno> {
        self.begin_call(Call::Fdatasync);
        let synced = self.sync_fd(fd, true).await;
        self.end_call();
        synced
    }

    async fn sync_fd(&self, fd: Fd, data_only: bool) -> Result<(), Errno> {
        self.call_cost().await;
        let file = self.open_file(fd)?.file;
        self.sync_file(file, data_only).await;
        Ok(())
    }

    /// `sync(2)`: everything.
    pub async fn sync(&self) {
        self.begin_call(Call::Sync);
        self.call_cost().await;
        self.sync_everything().await;
        self.end_call();
    }

    /// `ftruncate`.
    ///
    /// # Errors
    /// [`Errno::BadFd`].
    pub async fn ftruncate(&self, fd: Fd, bytes: u64) -> Result<(), Errno> {
        self.call_cost().await;
        let file = self.open_file(fd)?.file;
        self.truncate(file, bytes).await;
        Ok(())
    }

    async fn truncate(&self, file: FileId, bytes: u64) {
        if self.is_ext(file) {
            self.ext_truncate(file, bytes).await;
        } else {
            self.machine.borrow_mut().kernel.resize(file, bytes);
        }
    }

    /// `stat` of a file whose inode is in memory, as all are: costs its processor time.
    ///
    /// # Errors
    /// [`Errno::NoEntry`].
    pub async fn stat(&self, path: &str) -> Result<(), Errno> {
        self.call_cost().await;
        let kernel = &self.machine.borrow().kernel;
        let exists = kernel.files.find(path).is_some() || kernel.is_directory(path);
        exists.then_some(()).ok_or(Errno::NoEntry)
    }

    /// `ftruncate` of a file that a job has open.
    pub(crate) async fn truncate_file(&self, file: FileId, bytes: u64) {
        self.call_cost().await;
        self.truncate(file, bytes).await;
    }

    /// `fallocate` of `bytes` from `offset` on.
    ///
    /// # Errors
    /// [`Errno::BadFd`], [`Errno::NoSpace`]; [`Errno::NotSupported`] as [`Filesystem::allocates`](super::Filesystem::allocates)
    /// says, and where a file without a file system is to get a hole.
    pub async fn fallocate(&self, fd: Fd, mode: Fallocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        let file = self.open_file(fd)?.file;
        self.fallocate_file(file, mode, offset, bytes).await
    }

    /// [`Sys::fallocate`] of a file that a job has open.
    pub(crate) async fn fallocate_file(
        &self,
        file: FileId,
        mode: Fallocate,
        offset: u64,
        bytes: u64,
    ) -> Result<(), Errno> {
        self.call_cost().await;
        match (self.is_ext(file), mode) {
            (true, Fallocate::Punch) => self.ext_punch(file, offset, bytes).await,
            (true, mode) => self.ext_fallocate(file, offset, bytes, mode == Fallocate::KeepSize).await,
            (false, Fallocate::Extend) => self.raw_grow(file, offset + bytes),
            (false, Fallocate::KeepSize) => Ok(()),
            (false, Fallocate::Punch) => Err(Errno::NotSupported),
        }
    }

    /// `unlink`.
    ///
    /// # Errors
    /// [`Errno::NoEntry`].
    pub async fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.call_cost().await;
        let file = self.machine.borrow().kernel.files.find(path).ok_or(Errno::NoEntry)?;
        if self.is_ext(file) {
            return self.ext_unlink(path).await;
        }
        let kernel = &mut self.machine.borrow_mut().kernel;
        kernel.files.unlink(path);
        if kernel.files.get(file).opens == 0 {
            kernel.resize(file, 0);
        }
        Ok(())
    }

    /// `rename`; a file of the new name is replaced.
    ///
    /// # Errors
    /// [`Errno::NoEntry`].
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        self.call_cost().await;
        let file = self.machine.borrow().kernel.files.find(from).ok_or(Errno::NoEntry)?;
        if self.is_ext(file) {
            return self.ext_rename(from, to).await;
        }
        let kernel = &mut self.machine.borrow_mut().kernel;
        if let Some(old) = kernel.files.find(to).filter(|old| *old != file) {
            kernel.files.unlink(to);
            kernel.resize(old, 0);
        }
        kernel.files.unlink(from);
        kernel.files.link(to, file);
        Ok(())
    }

    /// `mkdir`.
    ///
    /// # Errors
    /// [`Errno::Exists`].
    pub async fn mkdir(&self, path: &str) -> Result<(), Errno> {
        self.call_cost().await;
        if self.machine.borrow().kernel.ext.is_some() {
            return self.ext_mkdir(path).await;
        }
        let kernel = &mut self.machine.borrow_mut().kernel;
        if kernel.files.find(path).is_some() || !kernel.vfs.directories.insert(path.to_owned()) {
            return Err(Errno::Exists);
        }
        Ok(())
    }

    /// `statfs`: the bytes that files can still get.
    pub async fn statfs(&self) -> u64 {
        self.call_cost().await;
        self.machine.borrow().kernel.free_bytes()
    }

    /// `posix_fadvise(POSIX_FADV_DONTNEED)` for the whole file: its clean pages are dropped.
    pub fn fadvise_dontneed(&self, fd: Fd) {
        if let Ok(open) = self.open_file(fd) {
            self.invalidate(open.file);
        }
    }

    /// Submit a read of an O_DIRECT file (libaio); its end is one of [`Sys::next_completion`]'s answers.
    ///
    /// # Errors
    /// [`Errno::BadFd`]; [`Errno::Invalid`] when the file is not opened with O_DIRECT.
    pub async fn submit_pread(&self, fd: Fd, offset: u64, bytes: u64) -> Result<OpId, Errno> {
        self.submit_io(fd, Op::Read, offset, bytes).await
    }

    /// Submit a write to an O_DIRECT file (libaio).
    ///
    /// # Errors
    /// As [`Sys::submit_pread`].
    pub async fn submit_pwrite(&self, fd: Fd, offset: u64, bytes: u64) -> Result<OpId, Errno> {
        self.submit_io(fd, Op::Write, offset, bytes).await
    }

    async fn submit_io(&self, fd: Fd, op: Op, offset: u64, bytes: u64) -> Result<OpId, Errno> {
        self.call_cost().await;
        let open = self.open_file(fd)?;
        if !open.flags.direct {
            return Err(Errno::Invalid);
        }
        let file = open.file;
        let size = self.size_of(file);
        let bytes = if op == Op::Read { bytes.min(size.saturating_sub(offset)) } else { bytes };
        self.submit_direct(DirectIo { op, file, offset, bytes, ioprio: None, through: false }).await
    }

    fn open_file(&self, fd: Fd) -> Result<OpenFile, Errno> {
        self.machine.borrow_mut().kernel.vfs.get(fd).copied()
    }

    /// The file's size, bytes.
    pub(crate) fn size_of(&self, file: FileId) -> u64 {
        self.machine.borrow().kernel.files.get(file).bytes
    }

    async fn call_cost(&self) {
        self.compute(self.cpu_per_io_ns()).await;
    }
}

impl Kernel {
    fn is_directory(&self, path: &str) -> bool {
        self.vfs.directories.contains(path) || self.ext.as_ref().is_some_and(|ext| ext.is_directory(path))
    }
}
