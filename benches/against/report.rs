//! What was measured, as tables in Markdown and as JSON.

use serde_json::{Value as Json, json};

use crate::growth::Axis;
use crate::row::{Row, Unit, Value};

/// The table of rows with their goals; nothing if there are none.
pub fn rows_as_markdown(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "| what | against | time | its time | result | goal | reached |\n\
         | --- | --- | --: | --: | --: | --: | --- |\n",
    );
    for row in rows {
        let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
        let (peer, times) = match &row.peer {
            Some((peer, time)) => (code(peer), [row.ours.to_string(), time.to_string()]),
            None => (String::new(), Default::default()),
        };
        let what = if row.what.starts_with("tapelog") || row.what.starts_with("cat ") {
            code(&row.what)
        } else {
            row.what.replace('|', "\\|")
        };
        let reached = match row.reached() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let [ours, theirs] = times;
        table += &format!(
            "| {what} | {peer} | {ours} | {theirs} | {} | {} | {reached} |\n",
            row.result,
            row.goal(),
        );
    }
    table
}

/// A table for each thing that grows: a column a size.
pub fn axes_as_markdown(axes: &[Axis]) -> String {
    axes.iter().map(axis_as_markdown).collect()
}

fn axis_as_markdown(axis: &Axis) -> String {
    let sizes: String = axis.sizes.iter().map(|size| format!(" {size} |")).collect();
    let mut table = format!("\n| {} ({}) |{sizes}\n", axis.name, axis.with);
    table += &format!("| --- |{}\n", " --: |".repeat(axis.sizes.len()));
    for series in &axis.series {
        table += &format!("| {} |", series.name);
        for seconds in &series.seconds {
            table += &format!(" {} |", time(*seconds));
        }
        table.push('\n');
    }
    table
}

/// A time in the unit that suits it.
pub fn time(seconds: f64) -> Value {
    Value { amount: seconds, unit: Unit::Seconds }
}

/// All figures in one object.
pub fn as_json(rows: &[Row], axes: &[Axis]) -> String {
    let rows: Vec<Json> = rows.iter().map(row_as_json).collect();
    let growth: Vec<Json> = axes.iter().map(axis_as_json).collect();
    format!("{:#}\n", json!({ "rows": rows, "growth": growth }))
}

fn row_as_json(row: &Row) -> Json {
    json!({
        "name": row.name,
        "what": row.what,
        "ours": row.ours.amount,
        "ours_unit": row.ours.unit.name(),
        "against": row.peer.as_ref().map(|(peer, _)| peer),
        "peer": row.peer.as_ref().map(|(_, value)| value.amount),
        "result": row.result.amount,
        "result_unit": row.result.unit.name(),
        "goal": row.goal(),
        "reached": row.reached(),
    })
}

fn axis_as_json(axis: &Axis) -> Json {
    let series: Vec<Json> = axis
        .series
        .iter()
        .map(|series| json!({ "name": series.name, "seconds": series.seconds }))
        .collect();
    json!({ "grows": axis.name, "with": axis.with, "sizes": axis.sizes, "series": series })
}
