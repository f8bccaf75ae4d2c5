//! A loop of small synchronous writes as iozone makes it, and what a minute of it costs.

use super::harness::{SECOND, computer};
use fairlift_core::IoPrio;
use fairlift_sim::kernel::OpenFlags;

const KIB: u64 = 1024;

/// Milliseconds per `write 64 KiB + fsync` of iozone: new files, then the same files again.
fn iozone_ms(device: &'static str, scheduler: &'static str, mount: &'static str) -> (f64, f64) {
    let mut with = computer("2.6.34", "ext4", mount);
    with.device = device;
    with.scheduler = scheduler;
    let ran = with.run(|sys, marks| async move {
        let mut took = [0_u64; 2];
        for round in 0..50 {
            let name = format!("/iozone{round}");
            for (pass, took) in took.iter_mut().enumerate() {
                let file = sys.open(&name, OpenFlags::RDWR.create()).await.unwrap();
                sys.fsync(file).await.unwrap();
                let start = sys.now();
                for record in 0..16 {
                    sys.pwrite(file, record * 4 * KIB, 4 * KIB).await.unwrap();
                }
                sys.fsync(file).await.unwrap();
                *took += sys.now() - start;
                sys.fsync(file).await.unwrap();
                sys.close(file).await.unwrap();
                let _ = pass;
            }
        }
        marks.set("start", &sys);
        sys.sleep(took[0]).await;
        marks.set("write", &sys);
        sys.sleep(took[1]).await;
        marks.set("rewrite", &sys);
    });
    let ms = |from, to| (ran.at(to) - ran.at(from)) as f64 / 50e6;
    (ms("start", "write"), ms("write", "rewrite"))
}

#[test]
fn the_loop_takes_what_the_posts_say() {
    for (device, scheduler, mount) in [
        ("san-nvram", "deadline", "barrier=1"),
        ("san-nvram", "cfq", "barrier=1"),
        ("sata7200-2009", "deadline", "barrier=1"),
        ("sata7200-2009", "cfq", "barrier=1"),
        ("sata7200-2009", "deadline", "barrier=0"),
        ("sata7200-2009", "deadline", "barrier=1,size_mib=20480"),
    ] {
        let (write, rewrite) = iozone_ms(device, scheduler, mount);
        println!("{device} {scheduler} {mount}: write {write:.2} ms, rewrite {rewrite:.2} ms");
    }
    let (write, rewrite) = iozone_ms("san-nvram", "deadline", "barrier=1");
    assert!((1.2..2.0).contains(&write) && (1.2..2.0).contains(&rewrite), "{write} {rewrite}");
}

/// A minute of fsyncs beside a sequential reader, simulated in under a second (release build; tests are optimised a little less).
#[test]
fn a_minute_is_simulated_quickly() {
    for (device, scheduler) in [("sata7200-2009", "cfq"), ("san-nvram", "cfq"), ("san-nvram", "deadline")] {
        let mut with = computer("2.6.34", "ext4", "barrier=1");
        with.device = device;
        with.scheduler = scheduler;
        let started = std::time::Instant::now();
        let mut simulation = with.build();
        simulation.with_machine(|m| m.make_file("/big", 2 << 30)).unwrap();
        simulation.spawn(IoPrio::DEFAULT, |sys| async move {
            let file = sys.open("/big", OpenFlags::RDONLY).await.unwrap();
            while sys.now() < 60 * SECOND {
                if sys.read(file, 64 * KIB).await.unwrap() == 0 {
                    sys.lseek(file, 0).unwrap();
                    sys.fadvise_dontneed(file);
                }
            }
        });
        simulation.spawn(IoPrio::DEFAULT, |sys| async move {
            let mut n = 0;
            while sys.now() < 60 * SECOND {
                let file = sys.open(&format!("/f{n}"), OpenFlags::RDWR.create()).await.unwrap();
                sys.write(file, 64 * KIB).await.unwrap();
                sys.fsync(file).await.unwrap();
                sys.close(file).await.unwrap();
                n += 1;
            }
            println!("{n} files");
        });
        simulation.run(100 * SECOND, &mut |_| {});
        let requests: u64 = simulation.with_machine(|m| m.block().stats().requests.iter().sum());
        println!(
            "{device} {scheduler}: 60 s in {:.2} s, {requests} requests",
            started.elapsed().as_secs_f64()
        );
    }
}
