//! What keeps the files of a directory: a disk of this machine, or a server. Pure: the
//! system's number for a file system and the table of mounts in, a verdict out.

/// A file system, as far as a log has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Its locks hold for every process that sees the files, and a sync reaches the disk.
    Local,
    /// Neither can be relied on: the files are a server's, or another machine's.
    Network {
        /// What it is called.
        name: String,
    },
}

/// The number of FUSE, whose programs may stand for anything: the mount says which.
pub(crate) const FUSE: u32 = 0x6573_5546;

/// What the numbers stand for whose locks go to a server, if anywhere. GFS2 and OCFS2
/// are not here: they keep a disk, and lock it for all their machines.
const NETWORK: [(u32, &str); 21] = [
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x0102_1997, "9p"),
    (0x00C3_6400, "ceph"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x0BD0_0BD0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0xAAD7_AAEA, "panfs"),
    (0x2003_0528, "orangefs"),
    (0xBEEF_DEAD, "snfs"),
    (0x0131_11A8, "ibrix"),
    (0x6163_6673, "acfs"),
    (0x564C, "ncpfs"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "vmhgfs"),
    (0x7C7C_6673, "prl_fs"),
];

/// What FUSE mounts are called whose files are a server's. Others are taken for local:
/// most of them only change names or bytes on their way to a disk.
const FUSE_NETWORK: [&str; 24] = [
    "alluxio-fuse",
    "blobfuse",
    "blobfuse2",
    "ceph-fuse",
    "curlftpfs",
    "dfuse",
    "fuse_dfs",
    "gcsfuse",
    "geesefs",
    "glusterfs",
    "goofys",
    "grpcfuse",
    "gvfsd-fuse",
    "juicefs",
    "kio-fuse",
    "mfs",
    "osxfs",
    "rclone",
    "s3fs",
    "s3ql",
    "seaweedfs",
    "smbnetfs",
    "sshfs",
    "vmhgfs-fuse",
];

/// The file system with this number, FUSE left aside.
pub(crate) fn of_number(number: u32) -> FileSystem {
    match NETWORK.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => FileSystem::Network { name: (*name).to_owned() },
        None => FileSystem::Local,
    }
}

/// The FUSE file system on `device`, by the text of `/proc/self/mountinfo`.
pub(crate) fn of_fuse(mounts: &str, (major, minor): (u32, u32)) -> FileSystem {
    let device = format!("{major}:{minor}");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&device));
    // Optional fields stand before the hyphen, so that only after it places are fixed.
    let kind = mount.and_then(|line| line.split_once(" - ")?.1.split(' ').next());
    let program = kind.and_then(|kind| kind.strip_prefix("fuse."));
    match program.filter(|program| FUSE_NETWORK.contains(program)) {
        Some(program) => FileSystem::Network { name: format!("fuse.{program}") },
        None => FileSystem::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(name: &str) -> FileSystem {
        FileSystem::Network { name: name.to_owned() }
    }

    #[test]
    fn file_systems_of_servers_are_known_by_their_numbers() {
        // As statfs(2) and the kernel's magic.h have them.
        let known = [
            (0x6969, "nfs"),
            (0xFF53_4D42, "cifs"),
            (0xFE53_4D42, "smb2"),
            (0x0102_1997, "9p"),
            (0x00C3_6400, "ceph"),
            (0x0BD0_0BD0, "lustre"),
            (0x786F_4256, "vboxsf"),
        ];
        for (number, name) in known {
            assert_eq!(of_number(number), network(name));
        }
    }

    #[test]
    fn disks_of_this_machine_are_local() {
        let (ext4, xfs, btrfs, tmpfs) = (0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994);
        let (overlay, zfs, f2fs, vfat) = (0x794C_7630, 0x2FC1_2FC1, 0xF2F5_2010, 0x4D44);
        for number in [ext4, xfs, btrfs, tmpfs, overlay, zfs, f2fs, vfat, FUSE] {
            assert_eq!(of_number(number), FileSystem::Local, "{number:#x}");
        }
    }

    #[test]
    fn no_number_stands_for_two() {
        let mut numbers: Vec<u32> = NETWORK.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), NETWORK.len());
        assert!(FUSE_NETWORK.contains(&"sshfs"));
    }

    #[test]
    fn a_fuse_mount_is_what_its_program_is() {
        let mounts = "\
            22 28 0:20 / /proc rw,nosuid shared:12 - proc proc rw\n\
            90 28 0:52 / /mnt/a\\040b rw shared:40 master:3 - fuse.sshfs me@host:/x rw\n\
            91 28 0:53 / /mnt/disk rw - fuseblk /dev/sdb1 rw\n\
            92 28 0:54 / /mnt/x rw - fuse.fuse-overlayfs fuse-overlayfs rw\n\
            93 28 0:5 / /mnt/y rw - fuse.rclone remote: rw\n\
            94 28 0:55 / /mnt/z rw - fuse nothing rw\n\
            cut short";
        let found = |minor| of_fuse(mounts, (0, minor));
        assert_eq!((found(52), found(5)), (network("fuse.sshfs"), network("fuse.rclone")));
        for local in [53, 54, 55, 20, 2] {
            assert_eq!(found(local), FileSystem::Local, "{local}");
        }
        assert_eq!(of_fuse("", (0, 52)), FileSystem::Local);
    }
}
