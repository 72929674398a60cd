//! The book's reference pages, generated from the grammar, the key table, the schemas and the
//! engine's lists.
//!
//! Compiled for tests only. A test compares each page with its file in `engine/docs/src/reference`;
//! with `PINWHEEL_UPDATE_DOCS=1` it writes the file instead.

#![allow(clippy::unwrap_used, reason = "harness")]

mod schema;
mod source;

use crate::cli::args::Args;
use crate::cli::manual::{EXIT_STATUSES, default_of, names_of, shown as commands};
use crate::keymap::{Scope, page};
use crate::model::View;
use clap::CommandFactory;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::snapshot::{FaultView, Snapshot};
use pinwheel_report::moment::{OF_THE_END, moment};

use pinwheel_engine::profile::{Applies, Profile, RuleId, applies};
use pinwheel_engine::record::{metrics, tape::Tape};
use pinwheel_engine::units::Nanos;
use pinwheel_lab::drill::Drill;
use serde_json::{Value, json};
use source::{Items, Kind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MADE: &str = "<!-- Generated. Do not edit: \
                    PINWHEEL_UPDATE_DOCS=1 cargo test -p pinwheel --bin pinwheel reference -->\n\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Compares a file of the book with the generated text, or writes it.
#[track_caller]
fn compare(file: &str, expected: &str) {
    let path = root().join("engine/docs/src/reference").join(file);
    if std::env::var_os("PINWHEEL_UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{file} is not what the program says. First difference: {differs:?}. Make it anew: \
         PINWHEEL_UPDATE_DOCS=1 cargo test -p pinwheel --bin pinwheel reference"
    );
}

/// Text for a table cell, without line breaks and column marks.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What a field means, in the words of JSON.
fn in_json(doc: &str) -> String {
    doc.replace("`None`", "`null`")
}

fn code(text: &str) -> String {
    format!("`{}`", cell(text))
}

fn head(columns: &[&str]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The recording that the tests keep, in its third second.
fn golden() -> Snapshot {
    let mut tape = Tape::open(&root().join("tui/tests/golden")).unwrap();
    let at = tape.tick_at(Nanos(3_000_000_000));
    tape.at(at).unwrap().unwrap().snapshot().unwrap().unwrap()
}

#[test]
fn the_page_of_commands_is_the_grammar() {
    let mut command = Args::command();
    command.build();
    let mut text = format!("# Commands\n\n{MADE}");
    text += "`pinwheel COMMAND --help` says the same. Results go to standard output, messages for people to standard\n\
             error. [Exit statuses](exit-codes.md) and [JSON](json.md) have pages of their own.\n\n";
    text += &head(&["command", "what it does"]);
    for inner in commands(&command) {
        let name = inner.get_name();
        text += &row(&[format!("[`pinwheel {name}`](#pinwheel-{name})"), about(inner)]);
    }
    for inner in commands(&command) {
        describe(inner, "pinwheel", 2, &mut text);
    }
    compare("commands.md", &text);
}

fn about(command: &clap::Command) -> String {
    cell(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn an_option_has_its_short_name_and_its_long_name() {
    let named = clap::Arg::new("output").short('o').long("output");
    assert_eq!(names_of(&named), "-o, --output");
    assert_eq!(names_of(&clap::Arg::new("at").long("at")), "--at");
    assert_eq!(names_of(&clap::Arg::new("run")), "");
}

fn describe(command: &clap::Command, above: &str, depth: usize, text: &mut String) {
    let name = format!("{above} {}", command.get_name());
    *text += &format!("\n{} {name}\n\n{}.\n", "#".repeat(depth), about(command));
    let options: Vec<_> =
        command.get_arguments().filter(|option| option.get_id() != "help" && !option.is_hide_set()).collect();
    if !options.is_empty() {
        *text += &format!("\n{}", head(&["option", "meaning"]));
    }
    for option in options {
        let names = option.get_value_names().unwrap_or_default();
        let value = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
        let value = if option.get_action().takes_values() { value } else { String::new() };
        let shown = [names_of(option), value].join(" ").trim().to_owned();
        let help = option.get_help().map(ToString::to_string).unwrap_or_default() + &default_of(option);
        let choices: Vec<String> = option.get_possible_values().iter().map(|choice| code(choice.get_name())).collect();
        let is_choice = !choices.is_empty() && option.get_action().takes_values();
        let choices = if is_choice { format!(": {}", choices.join(", ")) } else { String::new() };
        *text += &row(&[code(&shown), format!("{}{choices}", cell(&help))]);
    }
    for inner in commands(command) {
        describe(inner, &name, depth + 1, text);
    }
}

#[test]
fn the_page_of_keys_is_the_key_table() {
    let mut text = format!("# Keys\n\n{MADE}");
    text += "`?` in the console shows the same table. A file of keys changes them: `keys.ron` in the directory of\n\
             profiles or in `$XDG_CONFIG_HOME/pinwheel`, or the file that `--keys` names. It is a map in RON from a\n\
             scope to names and keys:\n\n\
             ```ron\n{ \"views\": { \"freeze\": [\"F\", \"F5\"], \"filter\": [\"f\"] } }\n```\n\n\
             A name in the file has the keys of the file and no others. A name that the file leaves out keeps its\n\
             own keys. A key with two meanings in one scope is refused.\n";
    for scope in Scope::ALL {
        text += &format!(
            "\n## {} (`{}`)\n\n{}",
            capital(scope.heading()),
            scope.name(),
            head(&["keys", "name", "what it does"])
        );
        for (keys, name, what) in page::lines(scope) {
            let keys: Vec<String> = keys.split(' ').map(code).collect();
            text += &row(&[keys.join(" "), code(name), cell(what)]);
        }
    }
    compare("keys.md", &text);
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[test]
fn the_page_of_profile_fields_is_the_schema() {
    let items = Items::read(&root());
    let base = serde_json::to_value(Profile::base()).unwrap();
    let mut text = format!("# Profile fields\n\n{MADE}");
    text += "A profile is one file in [RON](https://github.com/ron-rs/ron), read by `--profile NAME` and by `ctl profile`.\n\
             *Live* fields change on a running engine when a profile is switched; all others take effect at the next\n\
             start. `pinwheel profiles diff A B` says which of both each difference is. A field that a profile leaves\n\
             out has the value of the profile that it names as its `base`; without a `base` it has the default below.\n\
             [Profiles](../guide/profiles.md) explains how they are used.\n";
    let mut enums = BTreeSet::new();
    fields_of(&items, "Profile", "", &base, &mut text, &mut enums);
    text += "\n## Values\n";
    let mut named: Vec<String> = enums.iter().cloned().collect();
    while let Some(name) = named.pop() {
        for inner in items.get(&name).fields.iter().flat_map(|field| items.named_in(&field.of)) {
            if enums.insert(inner.clone()) {
                named.push(inner);
            }
        }
    }
    for name in &enums {
        let item = items.get(name);
        text += &format!("\n### {name}\n\n{}\n\n{}", item.doc, head(&["value", "meaning"]));
        for field in &item.fields {
            let value =
                if item.kind == Kind::Enum { format!("{}{}", field.name, field.of) } else { field.name.clone() };
            text += &row(&[code(&value), cell(&field.doc)]);
        }
    }
    compare("profile.md", &text);
}

/// A table for each record, followed by the tables of its nested records.
fn fields_of(items: &Items, name: &str, path: &str, value: &Value, text: &mut String, enums: &mut BTreeSet<String>) {
    let item = items.get(name);
    let title = if path.is_empty() { "The whole profile".to_owned() } else { code(path) };
    *text += &format!("\n## {title}\n\n{}\n\n{}", item.doc, head(&["field", "type", "applies", "meaning", "default"]));
    let mut inside = Vec::new();
    for field in &item.fields {
        let path = if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
        let found = &value[&field.name];
        let record = items.named_in(&field.of).into_iter().find(|name| items.get(name).kind == Kind::Struct);
        let is_direct = record.as_ref().is_some_and(|record| *record == field.of);
        let shown = if is_direct { "(below)".to_owned() } else { code(&ron(found, &field.of)) };
        let when = if applies(&path) == Applies::Live { "live" } else { "restart" };
        *text += &row(&[code(&field.name), kind_of(items, &field.of), when.to_owned(), cell(&field.doc), shown]);
        if let Some(record) = record.filter(|_| is_direct) {
            inside.push((record, path, found.clone()));
        } else {
            enums.extend(items.named_in(&field.of));
        }
    }
    for (record, path, value) in inside {
        fields_of(items, &record, &path, &value, text, enums);
    }
}

fn kind_of(items: &Items, of: &str) -> String {
    let inner = |prefix: &str| of.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    match of {
        "u8" | "u16" | "u32" | "u64" => "whole number".to_owned(),
        "f64" => "number".to_owned(),
        "bool" => "true or false".to_owned(),
        "String" => "text".to_owned(),
        _ => match (inner("Option<"), inner("Vec<")) {
            (Some(inner), _) => format!("`None` or `Some(…)`: {}", kind_of(items, inner)),
            (_, Some(inner)) => format!("list: {}", kind_of(items, inner)),
            _ if items.find(of).is_some_and(|item| item.kind == Kind::Struct) => code(of),
            _ => format!("[{}](#{})", code(of), of.to_lowercase()),
        },
    }
}

/// A value of a profile as RON writes it, given its JSON.
fn ron(value: &Value, of: &str) -> String {
    let inner = of.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>'));
    match (value, inner) {
        (Value::Null, _) => "None".to_owned(),
        (_, Some(inner)) => format!("Some({})", ron(value, inner)),
        // A variant: texts within other values begin with a small letter.
        (Value::String(text), _) if of != "String" && text.starts_with(char::is_uppercase) => text.clone(),
        (Value::Array(values), _) => {
            format!("[{}]", values.iter().map(|value| ron(value, "")).collect::<Vec<_>>().join(", "))
        }
        (Value::Object(fields), _) => {
            let is_variant = fields.keys().all(|name| name.starts_with(char::is_uppercase));
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, value)| {
                    let value = ron(value, "");
                    if is_variant { format!("{name}{}", in_brackets(&value)) } else { format!("{name}: {value}") }
                })
                .collect();
            if is_variant { parts.join(", ") } else { format!("({})", parts.join(", ")) }
        }
        _ => value.to_string(),
    }
}

fn in_brackets(value: &str) -> String {
    if value.starts_with('(') { value.to_owned() } else { format!("({value})") }
}

#[test]
fn the_page_of_json_and_the_schema_are_those_of_the_report() {
    let items = Items::read(&root());
    let mut text = format!("# JSON\n\n{MADE}");
    text += "`pinwheel run --json` prints one object; `report.json` in the run's directory is the same object. Times are\n\
             nanoseconds. `replay --json` and `attach --json` print the same fields for one moment, without those of\n\
             the end, and add `alarms` (every alarm of the log), `board` (every counter) and where they looked.\n\
             [`run.schema.json`](run.schema.json) is this page as a JSON Schema. A later version adds fields; it\n\
             renames and removes none that the repository's changelog does not list.\n";
    let (mut seen, mut at) = (vec!["Report".to_owned()], 0);
    while let Some(name) = seen.get(at).cloned() {
        at += 1;
        let item = items.get(&name);
        text += &format!("\n## {name}\n\n{}\n\n", item.doc);
        // The fields of some are those of another item, which says what they mean.
        let has_meanings = item.fields.iter().any(|field| !field.doc.is_empty());
        text += &match item.kind {
            Kind::Struct if !has_meanings => head(&["field", "type"]),
            Kind::Struct => head(&["field", "type", "meaning"]),
            Kind::Enum if item.is_untagged => head(&["the fields of", "meaning"]),
            Kind::Enum => head(&["value", "meaning"]),
        };
        for field in &item.fields {
            match item.kind {
                Kind::Struct => {
                    let of = if field.is_flat {
                        format!("the fields of {}", json_kind(&items, &field.of))
                    } else {
                        json_kind(&items, &field.of)
                    };
                    let cells = [code(&field.name), of, cell(&in_json(&field.doc))];
                    text += &row(&cells[..if has_meanings { 3 } else { 2 }]);
                }
                Kind::Enum if item.is_untagged => {
                    text += &row(&[json_kind(&items, field.of.trim_matches(['(', ')'])), cell(&field.doc)]);
                }
                Kind::Enum => text += &row(&[code(&item.renamed(&field.name)), cell(&field.doc)]),
            }
            for inner in items.named_in(&field.of) {
                if !seen.contains(&inner) {
                    seen.push(inner);
                }
            }
        }
    }
    text += "\n## Histogram\n\nA distribution of times: `p50`, `p90`, `p99`, `p999`, `max`, `mean` and `count`. A quantile is the upper end of\n\
             its bucket, at most 6.25 % above the value.\n";
    compare("json.md", &text);
    let mut schema = serde_json::to_string_pretty(&schema::of(&items, &seen)).unwrap();
    schema.push('\n');
    compare("run.schema.json", &schema);
}

fn json_kind(items: &Items, of: &str) -> String {
    let inner = |prefix: &str| of.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    match of {
        "Histogram" => "[histogram](#histogram)".to_owned(),
        "String" | "&'static str" => "text".to_owned(),
        "f64" => "number".to_owned(),
        "bool" => "true or false".to_owned(),
        "Value" | "serde_json::Value" => "object".to_owned(),
        _ if of.starts_with(['u', 'i']) => "whole number".to_owned(),
        _ if of.starts_with("BTreeMap<") => "object by name".to_owned(),
        _ if of.starts_with("Vec<(&'static str,") => "object by name".to_owned(),
        _ => match (inner("Option<"), inner("Vec<")) {
            (Some(inner), _) => format!("{} or `null`", json_kind(items, inner)),
            (_, Some(inner)) => format!("list: {}", json_kind(items, inner)),
            _ if items.find(of).is_some() => format!("[{}](#{})", code(of), of.to_lowercase()),
            _ => "list".to_owned(),
        },
    }
}

#[test]
fn a_report_is_what_its_schema_says() {
    let schema: Value = serde_json::from_str(
        &std::fs::read_to_string(root().join("engine/docs/src/reference/run.schema.json")).unwrap(),
    )
    .unwrap();
    let report = moment(&golden(), "replay", &json!({}));
    let said = schema::faults(&report, &schema, &schema, "report");
    // A moment of a recording has no end of run, and includes the whole board.
    let of_a_moment = ["report.board is not", "report.replay is not"];
    let of_the_end = |said: &str| OF_THE_END.iter().any(|name| said == format!("report.{name} is missing"));
    let said: Vec<_> = said
        .iter()
        .filter(|said| !of_the_end(said) && !of_a_moment.iter().any(|name| said.starts_with(name)))
        .collect();
    assert!(said.is_empty(), "{said:#?}");
}

#[test]
fn the_page_of_exit_statuses_and_error_codes_is_the_lists_of_the_program() {
    let items = Items::read(&root());
    let mut text = format!("# Exit statuses and error codes\n\n{MADE}");
    text += "## Exit statuses\n\nWhat every command returns to the shell.\n\n";
    text += &head(&["status", "meaning"]);
    for (status, what) in EXIT_STATUSES {
        text += &row(&[status.to_owned(), what.to_owned()]);
    }
    text += "\n## Error codes of answers\n\nA shot that cannot be decoded is answered with one of these. `errors` in JSON counts them by number;\n\
             `--answers` writes the name as `status`.\n\n";
    text += &head(&["code", "name", "meaning"]);
    let item = items.get("ErrorCode");
    for error in ErrorCode::ALL {
        let variant = format!("{error:?}");
        let field = item.fields.iter().find(|field| field.name == variant).unwrap();
        text += &row(&[(error as u16).to_string(), code(error.name()), cell(&field.doc)]);
    }
    compare("exit-codes.md", &text);
}

#[test]
fn the_page_of_alarms_is_the_bundled_rules_and_the_drills() {
    let mut text = format!("# Alarm rules and drills\n\n{MADE}");
    text += "## Rules\n\nThe bundled rules. A profile changes one with a row in `alarms`; `pinwheel drill --rules` prints them as such\n\
             rows. The limit counts in the rule's own unit.\n\n";
    text += &head(&["rule", "severity", "limit", "unit", "what to do"]);
    for id in RuleId::ALL {
        let rule = id.bundled();
        if let Some((before, _)) = rule.runbook.split_once(" view") {
            let named = before.rsplit(' ').next();
            assert!(View::ALL.iter().any(|view| Some(view.name()) == named), "{id} names a view that does not exist");
        }
        text += &row(&[
            code(id.name()),
            rule.severity.name().to_owned(),
            rule.limit.to_string(),
            cell(id.unit()),
            cell(&rule.runbook),
        ]);
    }
    text += "\n## Drills\n\n`pinwheel drill NAME` provokes a fault and compares the verdict with the one below. A drill that this machine\n\
             does not permit says why.\n\n";
    text += &head(&["drill", "verdict that it must get", "what it does"]);
    for drill in Drill::ALL {
        text += &row(&[code(drill.name()), drill.expected().name().to_owned(), cell(drill.what())]);
    }
    compare("alarms.md", &text);
}

#[test]
fn the_page_of_metrics_is_what_a_scraper_gets() {
    let mut golden = golden();
    let name = "launch_failed".to_owned();
    golden.faults.push(FaultView { code: 1, name, silo: Some(0), count: 1, first_ns: 1, last_ns: 1, detail: 0 });
    let shown = metrics::Exposition::default().text(&golden);
    let mut text = format!("# Metrics\n\n{MADE}");
    text += "`pinwheel run --metrics 9464` serves these at `http://127.0.0.1:9464/metrics` in the OpenMetrics text format.\n\
             The samples of a counter are named as it is with `_total` behind, that of an info with `_info`. Times are\n\
             seconds. A summary has the quantiles 0.5, 0.9, 0.99 and 0.999, and none while it is empty.\n\n";
    text += &head(&["name", "type", "labels", "meaning"]);
    let families: Vec<&str> = shown.split("# TYPE ").skip(1).collect();
    for family in families {
        let (first, rest) = family.split_once('\n').unwrap();
        let (name, kind) = first.split_once(' ').unwrap();
        let help = rest.lines().find_map(|line| line.strip_prefix(&format!("# HELP {name} "))).unwrap();
        let labels: BTreeSet<&str> = rest
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split_once('{')?.1.split_once('}')?.0))
            .flat_map(|labels| labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0)))
            .collect();
        let labels: Vec<String> = labels.into_iter().map(code).collect();
        text += &row(&[code(name), kind.to_owned(), labels.join(", "), cell(help)]);
    }
    compare("metrics.md", &text);
}
