//! `tapelog config`: show or change settings.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use crate::cli::failure::Usage;
use crate::cli::listing::{Listing, print_json};
use crate::cli::session::{LogArgument, Session, new_log_id};
use crate::cli::text::duration::{parse_duration, show_duration};
use crate::cli::text::size::{parse_size, show_size};
use crate::format::batch::MAX_RECORD;
use crate::format::codec::Compression;
use crate::format::settings::{Cleanup, Settings};
use crate::log::Log;

/// Show or change a log's settings
///
/// With KEY=VALUE the log is made if there is nothing at its path; KEY= sets a
/// setting back to its default. Producers that are running keep the settings that
/// they began with.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Settings:
  segment-size=SIZE     a new segment begins at this size; at least 512
  segment-age=DUR       a new segment begins after so long
  max-record-size=SIZE  larger records are refused; at most 64M
  max-log-size=SIZE     a log of this size refuses more; none for no limit
  cleanup=HOW           what gc does: delete, or compact as gc --compact
  SIZE is bytes, or 64K, 64M, 64G, 64T by 1024. DUR is 90s, 1h30m, 7d.

Examples:
  tapelog config demo                  what holds, and the defaults
  tapelog config demo segment-size=1M max-log-size=10G
  tapelog config demo max-log-size=    back to the default

JSON names:
  setting, value, default
")]
pub struct Config {
    #[command(flatten)]
    log: LogArgument,

    /// Settings to change
    #[arg(value_name = "KEY=VALUE")]
    changes: Vec<String>,

    /// Print a line of JSON a setting
    #[arg(short = 'J', long)]
    json: bool,
}

/// One setting: its name, and how its text becomes a value and back.
struct Setting {
    name: &'static str,
    default: fn() -> String,
    show: fn(&Settings) -> Option<String>,
    set: fn(&mut Settings, Option<&str>) -> std::result::Result<(), String>,
}

const SETTINGS: [Setting; 6] = [
    Setting {
        name: "segment-size",
        default: || show_size(Settings::DEFAULT_SEGMENT_SIZE),
        show: |settings| settings.segment_size.map(show_size),
        set: |settings, text| put(&mut settings.segment_size, text, parse_size),
    },
    Setting {
        name: "segment-age",
        default: || show_duration(Settings::DEFAULT_SEGMENT_AGE),
        show: |settings| settings.segment_age.map(|age| show_duration(Duration::from_millis(age))),
        set: |settings, text| put(&mut settings.segment_age, text, parse_age),
    },
    Setting {
        name: "max-record-size",
        default: || show_size(MAX_RECORD as u64),
        show: |settings| settings.max_record_size.map(show_size),
        set: |settings, text| put(&mut settings.max_record_size, text, parse_size),
    },
    Setting {
        name: "max-log-size",
        default: || "none".to_owned(),
        show: |settings| settings.max_log_size.map(show_size),
        set: |settings, text| put(&mut settings.max_log_size, text, parse_size),
    },
    Setting {
        name: "compression",
        default: || Compression::default().to_string(),
        show: |settings| settings.compression.map(|compression| compression.to_string()),
        set: |settings, text| put(&mut settings.compression, text, str::parse),
    },
    Setting {
        name: "cleanup",
        default: || Cleanup::default().to_string(),
        show: |settings| settings.cleanup.map(|cleanup| cleanup.to_string()),
        set: |settings, text| put(&mut settings.cleanup, text, str::parse),
    },
];

fn put<T>(
    place: &mut Option<T>,
    text: Option<&str>,
    parse: impl Fn(&str) -> std::result::Result<T, String>,
) -> std::result::Result<(), String> {
    *place = text.map(parse).transpose()?;
    Ok(())
}

fn parse_age(text: &str) -> std::result::Result<u64, String> {
    let age = parse_duration(text)?;
    u64::try_from(age.as_millis()).map_err(|_| format!("{text:?} is too long"))
}

/// Runs the command.
///
/// # Errors
/// [`Usage`] for a setting that is unknown or out of bounds; what the disk says.
pub fn run(args: &Config, session: &Session) -> Result<()> {
    if args.changes.is_empty() {
        return show(session.open(&args.log)?.settings(), args.json);
    }
    let mut settings = Settings::default();
    // A change that is wrong makes no log.
    change(&mut settings, &args.changes)?;
    let home = session.home(&args.log)?;
    let mut log = Log::open_or_create(&home, new_log_id()?, &settings)?;
    log.change_settings(|settings| change(settings, &args.changes))
}

fn change(settings: &mut Settings, changes: &[String]) -> Result<()> {
    for text in changes {
        let Some((name, value)) = text.split_once('=') else {
            bail!(Usage(format!("{text:?} is no setting: give KEY=VALUE")));
        };
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let known: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            bail!(Usage(format!("{name:?} is no setting: there are {}", known.join(", "))));
        };
        let value = Some(value).filter(|value| !value.is_empty() && *value != "none");
        (setting.set)(settings, value).map_err(|why| Usage(format!("{name}: {why}")))?;
    }
    Ok(settings.check().map_err(|error| Usage(error.to_string()))?)
}

#[derive(Serialize)]
struct Row {
    setting: &'static str,
    value: String,
    default: String,
}

fn show(settings: &Settings, json: bool) -> Result<()> {
    let rows = SETTINGS.iter().map(|setting| {
        let default = (setting.default)();
        let value = (setting.show)(settings).unwrap_or_else(|| default.clone());
        Row { setting: setting.name, value, default }
    });
    if json {
        return print_json(rows);
    }
    let mut listing = Listing::new(&["SETTING", ">VALUE", ">DEFAULT"]);
    rows.for_each(|row| listing.row([row.setting.to_owned(), row.value, row.default]));
    listing.print()
}
