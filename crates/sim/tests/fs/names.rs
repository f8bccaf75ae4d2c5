//! Creating, removing, renaming and cutting files: what goes into the transaction, and what errors there are.

use super::harness::{SECOND, computer};
use fairlift_sim::kernel::{Errno, Fallocate, OpenFlags};

const KIB: u64 = 1024;

/// Blocks in the journal for one operation, the descriptor not counted.
macro_rules! metadata_blocks {
    ($fs:expr, |$sys:ident| $change:block) => {{
        let ran = computer("2.6.34", $fs, "barrier=0").run(|$sys, marks| async move {
            let file = $sys.open("/dir/kept", OpenFlags::RDWR.create()).await.unwrap();
            $sys.write(file, 64 * KIB).await.unwrap();
            $sys.close(file).await.unwrap();
            $sys.sync().await;
            $sys.sleep_until(10 * SECOND).await;
            $change
            marks.set("commit", &$sys);
            $sys.sync().await;
            marks.set("done", &$sys);
        });
        let thread = if $fs == "ext3" { "kjournald" } else { "jbd2" };
        let bios = ran.bios("commit", "done");
        let body = bios.iter().find(|b| b.contains(&format!("{thread}: W 4")));
        body.map_or(0, |b| b.split(' ').next().unwrap().parse::<u32>().unwrap() - 1)
    }};
}

/// Directory block, its inode and the file's (one block here), superblock (orphan list), inode bitmap, group descriptor, block
/// bitmap.
#[test]
fn an_unlink_frees_inode_and_blocks() {
    for fs in ["ext3", "ext4"] {
        let blocks = metadata_blocks!(fs, |sys| {
            sys.unlink("/dir/kept").await.unwrap();
        });
        assert_eq!(blocks, 6, "{fs}");
    }
}

/// Only the directory's block and the inodes' block.
#[test]
fn a_rename_changes_directory_and_inode() {
    let blocks = metadata_blocks!("ext4", |sys| {
        sys.rename("/dir/kept", "/dir/other").await.unwrap();
    });
    // "/dir" was never made: both names are in the root.
    assert_eq!(blocks, 2);
}

/// Superblock, inode, block bitmap, group descriptor.
#[test]
fn cutting_a_file_frees_its_blocks() {
    for fs in ["ext3", "ext4"] {
        let blocks = metadata_blocks!(fs, |sys| {
            let file = sys.open("/dir/kept", OpenFlags::RDWR).await.unwrap();
            sys.ftruncate(file, 4 * KIB).await.unwrap();
        });
        assert_eq!(blocks, 4, "{fs}");
    }
}

/// Inode bitmap, group descriptors, the new inode, block bitmap, the new directory's block, the parent's block and inode; in
/// another group than the root most of these are other blocks.
#[test]
fn a_directory_takes_an_inode_and_a_block() {
    let blocks = metadata_blocks!("ext4", |sys| {
        sys.mkdir("/new").await.unwrap();
        assert_eq!(sys.mkdir("/new").await, Err(Errno::Exists));
    });
    assert_eq!(blocks, 7);
}

/// A file that is open stays until it is closed, and its blocks come back then.
#[test]
fn an_open_file_outlives_its_name() {
    computer("2.6.34", "ext4", "size_mib=64").run(|sys, _| async move {
        // Each needs a third of the file system.
        for _ in 0..10 {
            let file = sys.open("/big", OpenFlags::RDWR.create()).await.unwrap();
            sys.write(file, 16 << 20).await.unwrap();
            sys.fsync(file).await.unwrap();
            sys.unlink("/big").await.unwrap();
            assert_eq!(sys.open("/big", OpenFlags::RDONLY).await, Err(Errno::NoEntry));
            assert_eq!(sys.pread(file, 0, 4096).await, Ok(4096));
            sys.close(file).await.unwrap();
            assert_eq!(sys.pread(file, 0, 4096).await, Err(Errno::BadFd));
        }
    });
}

#[test]
fn a_full_file_system_says_so() {
    for fs in ["ext3", "ext4"] {
        computer("2.6.34", fs, "size_mib=64").run(|sys, _| async move {
            let file = sys.open("/big", OpenFlags::RDWR.create()).await.unwrap();
            let mut written = 0_u64;
            let error = loop {
                match sys.write(file, 1 << 20).await {
                    Ok(bytes) => written += bytes,
                    Err(error) => break error,
                }
            };
            assert_eq!(error, Errno::NoSpace);
            assert!((32 << 20..64 << 20).contains(&written), "{written}");
            sys.fsync(file).await.unwrap();
            sys.unlink("/big").await.unwrap();
            sys.close(file).await.unwrap();
            let again = sys.open("/again", OpenFlags::RDWR.create()).await.unwrap();
            assert_eq!(sys.write(again, 1 << 20).await, Ok(1 << 20));
        });
    }
}

/// Blocks set aside: bitmap, group descriptor, inode.
#[test]
fn fallocate_takes_blocks() {
    let blocks = metadata_blocks!("ext4", |sys| {
        let file = sys.open("/dir/kept", OpenFlags::RDWR).await.unwrap();
        sys.fallocate(file, Fallocate::KeepSize, 1 << 20, 1 << 20).await.unwrap();
        sys.close(file).await.unwrap();
    });
    assert_eq!(blocks, 3);
}

/// Whole blocks become free and read as zeros without I/O; of blocks at the edges a part is overwritten.
#[test]
fn a_hole_gives_its_blocks_back() {
    let ran = computer("6.12", "ext4", "").run(|sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
        sys.write(file, 64 * KIB).await.unwrap();
        sys.fsync(file).await.unwrap();
        let before = sys.statfs().await;
        sys.fallocate(file, Fallocate::Punch, 6 * KIB, 20 * KIB).await.unwrap();
        assert_eq!(sys.statfs().await - before, 16 * KIB, "8 to 24 KiB");
        sys.fadvise_dontneed(file);
        sys.fsync(file).await.unwrap();
        sys.fadvise_dontneed(file);
        marks.set("read", &sys);
        assert_eq!(sys.pread(file, 8 * KIB, 16 * KIB).await, Ok(16 * KIB));
        marks.set("hole", &sys);
        assert_eq!(sys.pread(file, 0, 64 * KIB).await, Ok(64 * KIB));
        marks.set("all", &sys);
        sys.fallocate(file, Fallocate::Punch, 0, 1 << 30).await.unwrap();
        assert_eq!(sys.statfs().await - before, 64 * KIB);
        assert_eq!(sys.fallocate(file, Fallocate::Punch, 1 << 20, 4 * KIB).await, Ok(()), "beyond the end");
    });
    assert_eq!(ran.issued("read", "hole"), [""; 0]);
    let kib: u32 = ran.between("hole", "all").iter().filter(|l| !l.write).map(|l| l.kib()).sum();
    assert!(kib >= 48, "{kib}");
}

#[test]
fn calls_fail_as_they_should() {
    for fs in ["raw", "ext3", "ext4"] {
        computer("2.6.34", fs, "").run(move |sys, _| async move {
            assert_eq!(sys.open("/none", OpenFlags::RDWR).await, Err(Errno::NoEntry));
            assert_eq!(sys.unlink("/none").await, Err(Errno::NoEntry));
            assert_eq!(sys.rename("/none", "/other").await, Err(Errno::NoEntry));
            sys.mkdir("/dir").await.unwrap();
            assert_eq!(sys.open("/dir", OpenFlags::RDWR).await, Err(Errno::IsDirectory));
            let file = sys.creat("/dir/f").await.unwrap();
            assert_eq!(sys.pread(file, 0, 1).await, Err(Errno::BadFd), "creat opens for writing");
            assert_eq!(sys.write(file, 5000).await, Ok(5000));
            assert_eq!(sys.write(file, 5000).await, Ok(5000), "the position moves");
            let fallocated = if fs == "ext3" { Err(Errno::NotSupported) } else { Ok(()) };
            assert_eq!(sys.fallocate(file, Fallocate::Extend, 0, 1 << 20).await, fallocated);
            let reader = sys.open("/dir/f", OpenFlags::RDONLY).await.unwrap();
            assert_eq!(sys.read(reader, 8000).await, Ok(8000));
            if fs == "ext3" {
                assert_eq!(sys.read(reader, 8000).await, Ok(2000), "the file ends");
                assert_eq!(sys.read(reader, 8000).await, Ok(0));
            }
            assert_eq!(sys.pwrite(reader, 0, 1).await, Err(Errno::BadFd));
            assert_eq!(sys.submit_pread(reader, 0, 4096).await, Err(Errno::Invalid), "not O_DIRECT");
            sys.fadvise_dontneed(reader);
            sys.statfs().await;
            sys.close(reader).await.unwrap();
            assert_eq!(sys.close(reader).await, Err(Errno::BadFd));
        });
    }
}

/// Blocks of a removed file belong to it until the commit: a crash would give them back. On ext3 always, on ext4 of today in ordered mode.
#[test]
fn freed_blocks_are_used_again_only_after_the_commit() {
    for (version, fs, mount, waits) in [
        ("2.6.34", "ext3", "", true),
        ("2.6.34", "ext4", "", false),
        ("6.12", "ext4", "", true),
        ("6.12", "ext4", "data=writeback", false),
    ] {
        let ran = computer(version, fs, mount).run(|sys, marks| async move {
            for (name, path) in [("first", "/a"), ("second", "/b"), ("third", "/c")] {
                marks.set(name, &sys);
                sys.sleep(1).await;
                let file = sys.open(path, OpenFlags::RDWR.create()).await.unwrap();
                sys.pwrite(file, 0, 32 * KIB).await.unwrap();
                // Only the data, so that nothing but the file system's own commit counts.
                sys.fsync(file).await.unwrap();
                sys.close(file).await.unwrap();
                sys.unlink(path).await.unwrap();
                if name == "second" {
                    sys.sync().await;
                }
            }
            marks.set("end", &sys);
        });
        let place = |from, to| {
            let lines = ran.between(from, to);
            lines
                .iter()
                .find(|line| line.task == "app" && line.write && line.kib() >= 4)
                .expect("its data")
                .sector
        };
        let places = [place("first", "second"), place("second", "third"), place("third", "end")];
        assert_eq!(places[0] != places[1], waits, "{version} {fs} {mount}: {places:?}");
        assert_eq!(places[2], places[0], "{version} {fs} {mount}: after the commit {places:?}");
    }
}
