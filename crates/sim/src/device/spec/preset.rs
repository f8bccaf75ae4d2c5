//! The presets: data files compiled in.

/// A device file that comes with fairlift.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// The file: TOML, each value with a comment that names its source.
    pub text: &'static str,
}

macro_rules! preset {
    ($name:literal, $description:literal) => {
        Preset {
            name: $name,
            description: $description,
            text: include_str!(concat!("../../../../../devices/", $name, ".toml")),
        }
    };
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    preset!("sata7200-2009", "1 TB 7,200 rpm SATA desktop disk of 2009, NCQ 31, write cache on"),
    preset!("fc15k", "450 GB 15,000 rpm Fibre Channel disk of 2009, write cache off"),
    preset!("nearline4t", "4 TB 7,200 rpm nearline disk of 2013, serpentine layout, NCQ 31, write cache on"),
    preset!(
        "desktop2t",
        "2 TB 7,200 rpm desktop disk of 2016 (ST2000DM006), NCQ 31 of which the firmware orders a few, write cache on"
    ),
    preset!(
        "shingled8t",
        "8 TB 5,900 rpm shingled disk (Archive ST8000AS0002), media cache of 32 GiB, bands of 30 MiB"
    ),
    preset!(
        "san-nvram",
        "LUN of a 2008 disk array: NVRAM writes, 8 GB read cache, 42 fc15k spindles, 4 Gb FC"
    ),
    preset!("flash-kd", "512 GB NVMe flash drive (970 PRO timings): 16 dies, 1 MiB write buffer, GC debt"),
    preset!("nvme-970pro", "Samsung 970 PRO 512 GB, client NVMe drive (MLC)"),
    preset!("nvme-970evo", "Samsung 970 EVO 500 GB, client NVMe drive (TLC)"),
    preset!("nvme-990pro", "Samsung 990 PRO 2 TB, fast client NVMe drive (TLC)"),
    preset!("nvme-sn720", "WD CL SN720 512 GB, boot and data drive of a data centre's servers (TLC)"),
    preset!(
        "nvme-hfs512",
        "SK hynix HFS512GDE9X083N 512 GB, boot and data drive of a data centre's servers (TLC)"
    ),
    preset!("nvme-p3plus", "Crucial P3 Plus 1 TB, client NVMe drive of four bits a cell (QLC)"),
    preset!("sata-ssd-870", "Samsung 870, client SATA flash drive"),
    preset!(
        "nvme-enterprise",
        "enterprise NVMe drive with power-loss protection, 1 TB (P4510's data sheet): flushes cost nothing"
    ),
    preset!(
        "nvme-p4500",
        "Intel DC P4500 2 TB, enterprise NVMe drive with power-loss protection (product guide): flushes cost nothing"
    ),
    preset!("cloud-gp3", "cloud volume of the gp3 kind: 3,000 IOPS and 125 MiB/s by token buckets"),
    preset!(
        "cloud-gp3-m5",
        "gp3 volume of 16,000 IOPS and 1,000 MiB/s on an m5.large, which takes 3,600 IOPS and 81 MB/s"
    ),
    preset!(
        "cloud-gp2",
        "cloud volume of the gp2 kind, 100 GiB: bursts to 3,000 IOPS from credits, 300 IOPS after that, 128 MiB/s"
    ),
    preset!(
        "cloud-io2",
        "cloud volume of the io2 Block Express kind: 16,000 IOPS provisioned, 4,000 MiB/s, below 0.5 ms"
    ),
    preset!(
        "cloud-pd-ssd",
        "persistent disk of the pd-ssd kind, 500 GiB: 15,000 IOPS, 480 MiB/s of reads, 400 MiB/s of writes"
    ),
    preset!(
        "qemu-throttle",
        "virtual disk behind QEMU's throttle: 400 IOPS and 20 MB/s, write cache, looks rotational"
    ),
    preset!("null", "completes every command after a constant; for benches and tests"),
];

/// A preset by its name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
