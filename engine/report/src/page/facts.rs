//! What ran and on what, the noise of its cores, rows of the environment check that failed, and warnings.
//!
//! Pure. Bounded by the report.

use super::markup::{Column, Markup};
use crate::evidence::{End, Evidence};
use crate::format::utc;
use crate::report::{duration_text, grouped, short, sum};
use pinwheel_engine::board::snapshot::{NoiseShares, ThreadView};
use pinwheel_engine::stall::verdict::times;
use serde_json::Value;

/// Writes the section of what ran.
pub fn what_ran(run: &Evidence, page: &mut Markup) {
    page.section("What ran");
    let manifest = run.manifest.as_ref();
    let of_manifest = |text: Option<&String>| text.cloned().unwrap_or_default();
    let or = |found: String, otherwise: String| if found.is_empty() { otherwise } else { found };
    let widths = run.count("detectors").zip(run.count("observables"));
    let widths = widths.map(|(detectors, observables)| format!("; {detectors} detectors, {observables} observables"));
    let model = run.report.get("model");
    let of_model = |key: &str| model.and_then(|model| model.get(key)).and_then(Value::as_str).unwrap_or_default();
    let model = [of_model("path"), of_model("hash")].join(", hash ");
    let input = or(run.text("input"), of_manifest(manifest.map(|manifest| &manifest.input)));
    let rows = [
        ("profile", or(run.text("profile"), of_manifest(manifest.map(|manifest| &manifest.profile)))),
        ("label", or(run.text("label"), of_manifest(manifest.map(|manifest| &manifest.label)))),
        ("input", input + &widths.unwrap_or_default()),
        ("arrivals", arrivals(run)),
        ("error model", if model == ", hash " { String::new() } else { model }),
        ("decoder", run.text("decoder")),
        ("predecoder", run.text("predecoder")),
        ("device", run.text("device")),
        (
            "streams",
            run.report.get("streams").and_then(Value::as_array).map_or_else(String::new, |rows| rows.len().to_string()),
        ),
        ("silos", run.count("silos").map_or_else(String::new, |silos| silos.to_string())),
        ("threads", threads(run)),
        ("machine", machine(run)),
        ("started", started(run)),
        ("duration", duration(run)),
        ("version", or(run.text("version"), of_manifest(manifest.map(|manifest| &manifest.version)))),
        ("command", manifest.map(|manifest| command(&manifest.command)).unwrap_or_default()),
        ("kept in", run.dir.display().to_string()),
    ];
    page.facts(&rows);
    page.close("section");
}

/// A command line that can be typed again.
fn command(words: &[String]) -> String {
    let is_plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:,=@%+".contains(c));
    let quoted = |word: &String| match is_plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn arrivals(run: &Evidence) -> String {
    let rate = match run.report.get("rate_hz").map(Value::as_f64) {
        Some(Some(hz)) => format!("{} shots per second", short(hz)),
        Some(None) => "as fast as they are taken".to_owned(),
        None => return String::new(),
    };
    let origin = run.text("rate_origin");
    if origin.is_empty() { rate } else { format!("{rate} ({origin})") }
}

fn threads(run: &Evidence) -> String {
    let thread = |thread: &Value| {
        let name = thread.get("name")?.as_str()?;
        let core = thread.get("core").and_then(Value::as_u64);
        Some(core.map_or_else(|| name.to_owned(), |core| format!("{name} (core {core})")))
    };
    run.rows("threads").iter().filter_map(thread).collect::<Vec<_>>().join(", ")
}

fn machine(run: &Evidence) -> String {
    let host = run.report.get("host").filter(|host| host.is_object());
    let Some(host) = host else { return String::new() };
    let text = |key: &str| host.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let cores = host.get("cores").and_then(Value::as_array).map(|cores| format!("{} cores", cores.len()));
    let memory = host.get("memory_bytes").and_then(Value::as_u64).map(|bytes| format!("{} GiB", bytes >> 30));
    let kernel = text("kernel_release").map(|kernel| format!("kernel {kernel}"));
    let is_virtual = host.get("hypervisor") == Some(&Value::Bool(true));
    let hypervisor = is_virtual.then(|| "under a hypervisor".to_owned());
    let parts = [text("hostname"), text("cpu_model"), cores, memory, kernel, hypervisor];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The moment of the start, in UTC, to the second.
fn started(run: &Evidence) -> String {
    let manifest = run.manifest.as_ref().and_then(|manifest| u64::try_from(manifest.started_utc_s).ok());
    let at_s = manifest.or_else(|| Some(run.last.as_ref()?.engine.started_utc_s)).filter(|at_s| *at_s > 0);
    let whole = at_s.and_then(|at_s| at_s.checked_mul(1_000_000_000)).map(utc);
    let Some((date, time)) = whole.as_deref().and_then(|whole| whole.split_once('T')) else { return String::new() };
    format!("{date} {} UTC", time.split('.').next().unwrap_or(time))
}

fn duration(run: &Evidence) -> String {
    match (run.count("elapsed_live_ns"), &run.last) {
        (Some(ns), _) => format!("{} live", span(ns)),
        (None, Some(last)) => format!("{} recorded", span(last.at_ns)),
        (None, None) => String::new(),
    }
}

/// A time of minutes and hours, too.
fn span(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    match s {
        0..120 => duration_text(ns),
        120..7_200 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3_600, s / 60 % 60),
    }
}

/// Writes the section of what took the cores away from the hot threads.
pub fn noise(run: &Evidence, page: &mut Markup) {
    let threads = run.last.iter().flat_map(|last| &last.threads);
    let accounted: Vec<_> = threads.filter_map(|thread| Some((thread, thread.noise.shares()?))).collect();
    if accounted.is_empty() {
        return;
    }
    page.section("Noise");
    page.paragraph(
        "The share of the time for which each hot thread's core was away. Interrupts are seen only while the thread \
         finds no work.",
    );
    let columns = [
        Column::Text("thread"),
        Column::Number("core"),
        Column::Number("lost"),
        Column::Number("other threads"),
        Column::Number("hypervisor"),
        Column::Number("interrupts, below the kernel"),
        Column::Number("longest gap"),
        Column::Text("who, and what would mend it"),
    ];
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let row = |(thread, shares): &(&ThreadView, NoiseShares)| {
        vec![
            thread.name.clone(),
            thread.core.map_or_else(String::new, |core| core.to_string()),
            percent(shares.lost()),
            percent(shares.ready),
            percent(shares.stolen),
            percent(shares.rest),
            duration_text(thread.noise.longest_gap_ns),
            thread.noise.source_text(thread.contended_by.as_ref(), thread.core),
        ]
    };
    page.table(&columns, &accounted.iter().map(row).collect::<Vec<_>>());
    page.close("section");
}

/// Writes the section of the environment check: rows that failed, then rows with a warning.
pub fn environment(run: &Evidence, page: &mut Markup) {
    page.section("Environment");
    let rows = run.environment.get("rows").and_then(Value::as_array);
    let Some(rows) = rows else {
        page.paragraph("The machine was not checked, or the result was not kept.");
        page.close("section");
        return;
    };
    let of = |verdict: &str| {
        let is_it = |row: &&Value| row.get("verdict").and_then(Value::as_str) == Some(verdict);
        let cells = |row: &Value| {
            ["id", "found", "expected", "why"]
                .map(|key| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned())
        };
        let rows = rows.iter().filter(is_it).map(|row| cells(row).to_vec());
        rows.collect::<Vec<_>>()
    };
    let (failed, warned) = (of("fail"), of("warn"));
    let count = |rows: &[Vec<String>], what: &str| match rows.len() {
        0 => format!("no row {what}s"),
        1 => format!("1 row {what}s"),
        n => format!("{n} rows {what}"),
    };
    page.paragraph(&format!("Of {} rows: {}, {}.", rows.len(), count(&failed, "fail"), count(&warned, "warn")));
    let columns = ["row", "found", "expected", "why it matters"].map(Column::Text);
    for (title, rows) in [("Rows that fail", failed), ("Rows that warn", warned)] {
        if !rows.is_empty() {
            page.element("h3", "", title);
            page.table(&columns, &rows);
        }
    }
    page.close("section");
}

/// Writes the section of warnings and notes; none, if there is nothing to say.
pub fn warnings(run: &Evidence, page: &mut Markup) {
    let is_at_end = |alarm: &&Value| alarm.get("number").is_none_or(Value::is_null);
    let is_sound = |alarm: &&Value| alarm.get("unsound") != Some(&Value::Bool(true));
    let what = |alarm: &Value| Some(alarm.get("what")?.as_str()?.to_owned());
    let mut said: Vec<String> = run.missing.clone();
    if run.end == End::Killed {
        said.push("What happened after the last sign of the run is not known.".to_owned());
    }
    said.extend(run.rows("alarms").iter().filter(is_at_end).filter(is_sound).filter_map(what));
    said.extend(clock(run));
    said.extend(run.rows("lifecycles").iter().filter_map(failed_silo));
    let log = |key: &str| run.report.get("log").and_then(|log| log.get(key)).and_then(Value::as_u64).unwrap_or(0);
    let unlogged = sum(["dropped", "unkept"].map(log));
    if unlogged > 0 {
        said.push(format!("{} events of hot threads are not in the log.", grouped(unlogged)));
    }
    said.extend(run.rows("notes").iter().filter_map(Value::as_str).map(str::to_owned));
    if said.is_empty() {
        return;
    }
    page.section("Warnings and notes");
    page.list(&said);
    page.close("section");
}

fn clock(run: &Evidence) -> Vec<String> {
    let clock = run.report.get("clock").cloned().unwrap_or_default();
    let steps = |key: &str| clock.get(key).and_then(Value::as_u64).filter(|steps| *steps > 0);
    let degraded = clock.get("degraded").and_then(Value::as_str);
    let parts = [
        degraded.map(|why| format!("The processor's counter was not used for times: {why}")),
        steps("utc_steps").map(|steps| format!("UTC was set {} during the run.", times(steps))),
        steps("counter_steps").map(|steps| {
            format!("The counter jumped {} against monotonic time: latencies across a jump are wrong.", times(steps))
        }),
    ];
    parts.into_iter().flatten().collect()
}

fn failed_silo(life: &Value) -> Option<String> {
    let count = |key: &str| life.get(key).and_then(Value::as_u64).unwrap_or(0);
    let deaths = Some(count("deaths")).filter(|deaths| *deaths > 0)?;
    Some(format!(
        "Silo {} failed {} and restarted {}; {} shots were answered with an error because of it.",
        count("id"),
        times(deaths),
        times(count("rejoins")),
        grouped(count("errored"))
    ))
}

#[cfg(test)]
mod tests {
    use super::{command, span};

    #[test]
    fn words_of_a_command_that_a_shell_would_split_are_quoted() {
        let words = ["run", "--label", "a b", "", "it's"].map(str::to_owned);
        assert_eq!(command(&words), r"run --label 'a b' '' 'it'\''s'");
    }

    #[test]
    fn a_duration_is_said_in_minutes_and_hours_where_it_has_them() {
        let spans = [2_000_651_435, 119_000_000_000, 754_000_000_000, 3_600_000_000_000 * 26].map(span);
        assert_eq!(spans, ["2.00 s", "119 s", "12 min 34 s", "26 h 0 min"]);
    }

    #[test]
    fn a_command_is_quoted_where_a_shell_would_take_a_word_for_something_else() {
        let words =
            ["pinwheel", "run", "--dem=a_5.dem", "--label", "run (1)", "(1)", "#1", "~", "{a,b}", "!", "it's", ""];
        let typed = command(&words.map(str::to_owned));
        let expected = r"pinwheel run --dem=a_5.dem --label 'run (1)' '(1)' '#1' '~' '{a,b}' '!' 'it'\''s' ''";
        assert_eq!(typed, expected);
    }
}
