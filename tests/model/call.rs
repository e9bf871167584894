//! The calls that a sequence is made of, small enough to be read in a failure: places
//! are shares of the log as it is then, and values are made when they are appended.

use std::ops::Range;

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use tapelog::disk::simulated::CrashStyle;

/// A share of something: 0 is its beginning, 255 its end or a little beyond.
pub type Share = u8;
/// One of the groups, or of the writers.
pub type Number = usize;

pub const GROUPS: [&str; 3] = ["a", "b", "c"];
pub const WRITERS: usize = 2;

/// A record to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub value: Value,
    pub has_key: bool,
    pub headers: u8,
    pub own_time: Option<i16>,
}

#[derive(Clone, Copy, Debug)]
pub enum Value {
    Null,
    Empty,
    Short,
    WithNewlines,
    /// So many KiB.
    Long(u8),
}

/// Where to begin or to stop.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Earliest,
    Latest,
    At(Share),
    Last(u8),
    AfterStart(u8),
    /// So many milliseconds ago.
    Ago(i16),
}

#[derive(Clone, Copy, Debug)]
pub enum Target {
    To(Place),
    By(i8),
    Current,
    Group(Number),
    Undo,
}

#[derive(Clone, Copy, Debug)]
pub enum Packed {
    No,
    Lz4,
    Zstd,
}

#[derive(Clone, Debug)]
pub enum Call {
    Append {
        writer: Number,
        records: Vec<Given>,
        packed: Packed,
    },
    /// With the log end expected there, or elsewhere.
    AppendIfEnd {
        writer: Number,
        right: bool,
    },
    Sync(Number),
    CloseWriter(Number),
    Reopen,
    Read(Place),
    ReadBack {
        from: Share,
        until: Share,
    },
    Claim {
        group: Number,
        new_at: Place,
        commits: bool,
    },
    /// By the consumer, so far into what it has not read.
    Consume(Share),
    SyncCheckpoint,
    Leave,
    /// By hand, so far into the log.
    Commit {
        group: Number,
        to: Share,
    },
    Seek {
        group: Number,
        target: Target,
    },
    Delete(Number),
    Gc,
    Seal {
        roll: bool,
    },
    Settings {
        segment_size: u64,
        packed: Packed,
    },
    List,
    DeleteDerived(Share),
    ClockSteps(i16),
    /// The process is killed so far into the last call that changed something.
    Kill(Share),
    PowerCut {
        at: Share,
        seed: u8,
        style: CrashStyle,
    },
}

/// Sequences of so many calls.
pub fn calls(count: Range<usize>) -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(call(), count)
}

fn call() -> impl Strategy<Value = Call> {
    let group = || 0..GROUPS.len();
    let writer = || 0..WRITERS;
    let share = any::<Share>;
    prop_oneof![
        20 => (writer(), prop::collection::vec(given(), 1..5), packed())
            .prop_map(|(writer, records, packed)| Call::Append { writer, records, packed }),
        2 => (writer(), any::<bool>()).prop_map(|(writer, right)| Call::AppendIfEnd { writer, right }),
        6 => writer().prop_map(Call::Sync),
        2 => writer().prop_map(Call::CloseWriter),
        1 => Just(Call::Reopen),
        5 => place().prop_map(Call::Read),
        3 => (share(), share()).prop_map(|(from, until)| Call::ReadBack { from, until }),
        4 => (group(), place(), prop::bool::weighted(0.8))
            .prop_map(|(group, new_at, commits)| Call::Claim { group, new_at, commits }),
        4 => share().prop_map(Call::Consume),
        2 => Just(Call::SyncCheckpoint),
        2 => Just(Call::Leave),
        4 => (group(), share()).prop_map(|(group, to)| Call::Commit { group, to }),
        6 => (group(), target()).prop_map(|(group, target)| Call::Seek { group, target }),
        1 => group().prop_map(Call::Delete),
        4 => Just(Call::Gc),
        3 => any::<bool>().prop_map(|roll| Call::Seal { roll }),
        1 => (prop::sample::select(&[512, 2048, 200_000][..]), packed())
            .prop_map(|(segment_size, packed)| Call::Settings { segment_size, packed }),
        2 => Just(Call::List),
        2 => share().prop_map(Call::DeleteDerived),
        1 => (-500..3_000_i16).prop_map(Call::ClockSteps),
        2 => end().prop_map(Call::Kill),
        4 => (end(), any::<u8>(), style())
            .prop_map(|(at, seed, style)| Call::PowerCut { at, seed, style }),
    ]
}

fn given() -> impl Strategy<Value = Given> {
    let value = prop_oneof![
        8 => Just(Value::Short),
        1 => Just(Value::Null),
        1 => Just(Value::Empty),
        1 => Just(Value::WithNewlines),
        1 => (1..40_u8).prop_map(Value::Long),
    ];
    let own_time = prop_oneof![4 => Just(None), 1 => any::<i16>().prop_map(Some)];
    let headers = prop_oneof![4 => Just(0), 1 => 1..3_u8];
    (value, prop::bool::weighted(0.2), headers, own_time)
        .prop_map(|(value, has_key, headers, own_time)| Given { value, has_key, headers, own_time })
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Earliest),
        Just(Place::Latest),
        any::<Share>().prop_map(Place::At),
        (0..9_u8).prop_map(Place::Last),
        (0..9_u8).prop_map(Place::AfterStart),
        (-20..2000_i16).prop_map(Place::Ago),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        3 => place().prop_map(Target::To),
        1 => (-20..20_i8).prop_map(Target::By),
        1 => Just(Target::Current),
        1 => (0..GROUPS.len()).prop_map(Target::Group),
        3 => Just(Target::Undo),
    ]
}

fn packed() -> impl Strategy<Value = Packed> {
    prop_oneof![4 => Just(Packed::No), 1 => Just(Packed::Lz4), 1 => Just(Packed::Zstd)]
}

/// After the whole of a call, or in the midst of it.
fn end() -> impl Strategy<Value = Share> {
    prop_oneof![Just(Share::MAX), any::<Share>()]
}

fn style() -> impl Strategy<Value = CrashStyle> {
    prop_oneof![
        1 => Just(CrashStyle::DropAll),
        1 => Just(CrashStyle::KeepAll),
        1 => Just(CrashStyle::NamesOnly),
        1 => Just(CrashStyle::BytesOnly),
        3 => prop_oneof![Just(64), Just(512), Just(4096)].prop_map(|sector| CrashStyle::Random { sector }),
        1 => Just(CrashStyle::Stale { sector: 512 }),
    ]
}
