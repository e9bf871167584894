//! Other stores with the same keys, each with its offset.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fjall::{Database as Fjall, Keyspace, KeyspaceCreateOptions, PersistMode};
use redb::{Database as Redb, ReadableDatabase, TableDefinition};

use super::{Asked, count, key};
use crate::bench::{Bench, seconds};

const TABLE: TableDefinition<'_, &str, u64> = TableDefinition::new("ids");

/// A store that is open.
pub enum Peer<'a> {
    /// A B-tree.
    Redb(Redb),
    /// An LSM tree; the store is kept open for its table.
    Fjall { _store: Fjall, table: Keyspace },
    /// A B-tree, asked by its own program in one statement, that it has read them all before.
    Sqlite(&'a Bench),
}

/// All that are installed.
pub fn open_all(bench: &Bench) -> Result<Vec<Peer<'_>>> {
    let mut peers = vec![redb(bench)?, fjall(bench)?];
    if bench.run("command -v sqlite3").is_ok() {
        peers.push(sqlite(bench)?);
    } else {
        eprintln!("left out: there is no sqlite3");
    }
    bench.settle()?;
    Ok(peers)
}

fn redb(bench: &Bench) -> Result<Peer<'_>> {
    let store = Redb::create(bench.at("ids.redb"))?;
    let transaction = store.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for number in 0..count(bench) {
            table.insert(key(number).as_str(), number)?;
        }
    }
    transaction.commit()?;
    Ok(Peer::Redb(store))
}

fn fjall(bench: &Bench) -> Result<Peer<'_>> {
    let store = Fjall::builder(bench.at("ids.fjall")).open()?;
    let space = store.keyspace("ids", KeyspaceCreateOptions::default)?;
    for number in 0..count(bench) {
        space.insert(key(number), number.to_le_bytes())?;
    }
    store.persist(PersistMode::SyncAll)?;
    Ok(Peer::Fjall { _store: store, table: space })
}

fn sqlite(bench: &Bench) -> Result<Peer<'_>> {
    // Sorted, as it takes keys in no order very slowly.
    bench.run(
        "awk -F: '{print $1 \":\" NR - 1}' ids | LC_ALL=C sort > sorted && sqlite3 ids.db \
         'create table ids(key text primary key, at integer) without rowid' \
         '.mode list' '.separator :' '.import sorted ids' && rm sorted",
    )?;
    Ok(Peer::Sqlite(bench))
}

impl Peer<'_> {
    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Peer::Redb(_) => "redb",
            Peer::Fjall { .. } => "fjall",
            Peer::Sqlite(_) => "sqlite3, one join",
        }
    }

    /// The seconds that finding all of `asked` takes.
    pub fn seconds(&self, asked: &Asked) -> Result<f64> {
        let begin = Instant::now();
        match self {
            Peer::Redb(store) => {
                let table = store.begin_read()?.open_table(TABLE)?;
                for (key, number) in asked.keys.iter().zip(&asked.numbers) {
                    let found = table.get(key.as_str())?.context("redb lost a key")?;
                    ensure!(found.value() == *number, "redb found another record");
                }
            }
            Peer::Fjall { table: space, .. } => {
                for (key, number) in asked.keys.iter().zip(&asked.numbers) {
                    let found = space.get(key)?.context("fjall lost a key")?;
                    ensure!(*found == number.to_le_bytes(), "fjall found another record");
                }
            }
            Peer::Sqlite(bench) => {
                bench.once("asked", |path| Ok(std::fs::write(path, asked.keys.join("\n"))?))?;
                let import = seconds(&mut bench.shell(&sqlite_line("select 1")))?;
                let all = seconds(&mut bench.shell(&sqlite_line(
                    "select count(at) from asked cross join ids using (key)",
                )))?;
                return Ok((all - import).max(f64::MIN_POSITIVE));
            }
        }
        Ok(begin.elapsed().as_secs_f64())
    }
}

/// What sqlite3 is asked once the keys are in a table.
fn sqlite_line(question: &str) -> String {
    format!("sqlite3 ids.db 'create temp table asked(key text)' '.import asked asked' '{question}'")
}
