//! Faults on request: which call of which class fails, and how. What a failed sync
//! does to the bytes is no matter of this module; see [`super::crash`].

use std::io;

/// The classes of calls that can be counted and made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Every call that can fail, of whatever class.
    Any,
    /// `open`.
    Open,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `set_len`.
    SetLen,
    /// `sync_data`.
    Sync,
    /// `create_new` and `create_dir`.
    Create,
    /// `link`.
    Link,
    /// `rename`.
    Rename,
    /// `remove_file`.
    Remove,
    /// `sync_dir`.
    SyncDir,
    /// `lock` and taking one. Letting go can't fail on a handle that is one.
    Lock,
    /// What only looks: `list`, `entry`, `len`, `is_at`, `dir_stamp`, `file_system`,
    /// `boot_id`.
    Look,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 13] = [
        Self::Any,
        Self::Open,
        Self::Read,
        Self::Write,
        Self::SetLen,
        Self::Sync,
        Self::Create,
        Self::Link,
        Self::Rename,
        Self::Remove,
        Self::SyncDir,
        Self::Lock,
        Self::Look,
    ];
}

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It fails with the system's error of this number, and changes nothing.
    Errno(i32),
    /// It fails with an error of this kind, and changes nothing.
    Kind(io::ErrorKind),
    /// A read or write moves at most so many bytes, but at least one. Other calls
    /// are not troubled.
    Short(usize),
}

impl Trouble {
    /// The device failed.
    pub const EIO: Self = Self::Errno(rustix::io::Errno::IO.raw_os_error());
    /// No space is left.
    pub const ENOSPC: Self = Self::Errno(rustix::io::Errno::NOSPC.raw_os_error());
    /// A signal came between.
    pub const EINTR: Self = Self::Errno(rustix::io::Errno::INTR.raw_os_error());
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// For that one call.
    Once,
    /// For that call and every second one of the class after it.
    OnAndOff,
    /// For that call and every later one of the class.
    ForEver,
}

/// The faults that wait, and how many calls came.
#[derive(Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<Fault>,
    calls: [u64; Class::ALL.len()],
    met: u64,
}

#[derive(Debug)]
struct Fault {
    class: Class,
    /// How many calls of the class go well first.
    spared: u64,
    trouble: Trouble,
    lasts: Lasts,
}

impl Faults {
    /// Lets the `nth` call of the class from now on fail; the next one is the first.
    pub fn add(&mut self, class: Class, nth: u64, trouble: Trouble, lasts: Lasts) {
        self.waiting.push(Fault { class, spared: nth.saturating_sub(1), trouble, lasts });
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// How many calls of this class came.
    pub const fn calls(&self, class: Class) -> u64 {
        self.calls[class as usize]
    }

    /// How many calls were troubled.
    pub const fn met(&self) -> u64 {
        self.met
    }

    /// A call of this class comes: how many bytes it may move, or its error. Every
    /// fault that waits for it counts it; the first one that is due decides.
    pub fn meet(&mut self, class: Class) -> io::Result<usize> {
        self.calls[class as usize] += 1;
        self.calls[Class::Any as usize] += 1;
        let mut due = None;
        self.waiting.retain_mut(|fault| {
            if !fault.waits_for(class) {
                return true;
            }
            if fault.spared > 0 {
                fault.spared -= 1;
                return true;
            }
            due = due.or(Some(fault.trouble));
            fault.spared = u64::from(fault.lasts == Lasts::OnAndOff);
            fault.lasts != Lasts::Once
        });
        self.met += u64::from(due.is_some());
        match due {
            None => Ok(usize::MAX),
            Some(Trouble::Short(bytes)) => Ok(bytes.max(1)),
            Some(Trouble::Errno(number)) => Err(io::Error::from_raw_os_error(number)),
            Some(Trouble::Kind(kind)) => Err(kind.into()),
        }
    }
}

impl Fault {
    fn waits_for(&self, class: Class) -> bool {
        let concerned = match self.trouble {
            Trouble::Short(_) => matches!(class, Class::Read | Class::Write),
            Trouble::Errno(_) | Trouble::Kind(_) => true,
        };
        concerned && (self.class == class || self.class == Class::Any)
    }
}
