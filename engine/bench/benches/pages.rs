//! Generates the book's page of figures and its plots from `BENCH` lines.
//!
//! Pure. Bounded by the lines. `main` writes the result after a full run; a test of package
//! `pinwheel` includes this file and compares its result for the stored lines with the files of the
//! book.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The subject of each area, in the order of the page.
const AREAS: [(&str, &str); 20] = [
    ("dispatch", "A shot's path from feed to harvest with a decoder that does nothing."),
    ("overhead", "The whole engine against a loop that only decodes."),
    ("window", "The last sliding window of a long experiment against the whole shot."),
    ("matching", "Matching of whole shots against the crate `stabilizer_qec` (feature `peers`)."),
    ("predecode", "Decoding with the predecoder against decoding without it."),
    ("frame", "One pass of a hot thread over roles that do nothing."),
    ("hops", "A message from feed through two roles and back, on two threads."),
    ("live", "A shot from another process and its answer."),
    ("ring", "One item through a ring between two threads."),
    ("queue", "One item through a bounded queue."),
    ("deque", "The deque of a worker of the task graph."),
    ("graph", "An empty task of the task graph, from submission to its end, on two workers."),
    ("arbiter", "A decision about who may write a page."),
    ("transfer", "A page of 4 KiB moved from one silo to another."),
    ("placement", "Choosing a silo for a stream, and how evenly silos are loaded then."),
    ("overflow", "Until no shot waits for a slot after a burst of three times what the device takes."),
    ("timer", "A million timers in a wheel."),
    ("histogram", "One value into a histogram."),
    ("scrub", "Going to an instant of a recording of an hour."),
    ("telemetry", "A run with watchdog, recorder and metrics against one without."),
];

/// One `BENCH` line.
struct Figure<'a> {
    name: &'a str,
    unit: &'a str,
    ours: f64,
    peer: Option<(&'a str, f64)>,
    floor: &'a str,
}

impl Figure<'_> {
    fn of(line: &str) -> Option<Figure<'_>> {
        let field = |from: &str, to: &str| {
            let rest = line.split_once(from)?.1;
            Some(if to.is_empty() { rest } else { rest.split_once(to)?.0 })
        };
        let line_ours = field(" ours=", " peer=")?.parse().ok()?;
        let theirs = field(" theirs=", " ratio=")?.parse().ok();
        Some(Figure {
            name: field("BENCH name=", " unit=")?,
            unit: field(" unit=", " ours=")?,
            ours: line_ours,
            peer: field(" peer=", " theirs=").zip(theirs),
            floor: field(" floor=", "")?,
        })
    }

    fn ratio(&self) -> Option<f64> {
        self.peer.map(|(_, theirs)| theirs / self.ours).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    fn is_of(&self, area: &str) -> bool {
        self.name.strip_prefix(area).is_some_and(|rest| rest.starts_with(['/', '_']))
    }
}

/// Files of the book by name: the page and two plots.
pub fn files(lines: &str) -> [(&'static str, String); 3] {
    let figures: Vec<Figure<'_>> = lines.lines().filter_map(Figure::of).collect();
    [
        ("BENCHMARKS.md", page(lines, &figures)),
        ("benchmarks-ratios.svg", ratios(&figures)),
        ("benchmarks-scaling.svg", scaling(&figures)),
    ]
}

fn page(lines: &str, figures: &[Figure<'_>]) -> String {
    let head = |key: &str| lines.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix('='));
    let mut text = String::from(
        "# Benchmarks\n\n<!-- Generated from engine/docs/bench.txt. Do not edit. -->\n\n\
         Each figure is measured beside a peer in the same run, because times on a shared or virtual machine\n\
         differ from one minute to the next and ratios do so less. A ratio is the peer's time divided by\n\
         Pinwheel's: above 1 Pinwheel is faster. The floor is the time of a bare round trip between the two\n\
         cores in nanoseconds; *near* and *far* tell whether they shared a cache.\n\n```sh\n\
         cargo bench -p pinwheel-bench                # every area, some minutes each\n\
         cargo bench -p pinwheel-bench -- ring graph  # some areas\n\
         cargo bench -p pinwheel-bench -- --pages     # every area, then this page from the result\n```\n\n",
    );
    for (key, what) in [("machine", "Machine"), ("date", "Date"), ("effort", "Effort")] {
        if let Some(found) = head(key) {
            text.push_str(&format!("- {what}: {found}\n"));
        }
    }
    if let Some(note) = head("note") {
        text.push_str(&format!("\n**Note.** {note}\n"));
    }
    text.push_str(
        "\n![Ratio of each peer's time to Pinwheel's, by figure](benchmarks-ratios.svg)\n\n\
         ![Times by size of the problem](benchmarks-scaling.svg)\n",
    );
    for (area, what) in AREAS {
        let mut rows = figures.iter().filter(|figure| figure.is_of(area)).peekable();
        if rows.peek().is_none() {
            continue;
        }
        text.push_str(&format!("\n## {area}\n\n{what}\n\n"));
        text.push_str("| figure | unit | Pinwheel | peer | peer's | ratio | floor |\n|---|---|--:|---|--:|--:|---|\n");
        for row in rows {
            let (peer, theirs) = row.peer.map_or(("–", "–".to_owned()), |(peer, theirs)| (peer, number(theirs)));
            let ratio = row.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            let (name, unit, ours) = (row.name, row.unit, number(row.ours));
            let floor = row.floor.replace(" mode=", ", ").replace('-', "–").to_lowercase();
            text.push_str(&format!("| `{name}` | {unit} | {ours} | {peer} | {theirs} | {ratio} | {floor} |\n"));
        }
    }
    text
}

/// Three digits, or all digits of a larger number.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

const INK: &str = "#333333";
const AHEAD: &str = "#2a7f62";
const BEHIND: &str = "#c05020";
const SERIES: [&str; 5] = ["#1f5fa8", "#c05020", "#2a7f62", "#7a4fa0", "#8a6d00"];

fn svg(width: f64, height: f64, title: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
         <title>{title}</title>\n<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

fn word(body: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _always_fits = writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

fn line(body: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
    let _always_fits = writeln!(
        body,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"1\"/>"
    );
}

/// A bar for each ratio on a logarithmic axis: to the right if ours is faster, to the left if the
/// peer is.
fn ratios(figures: &[Figure<'_>]) -> String {
    const ROW: f64 = 17.0;
    const LABELS: f64 = 470.0;
    const PLOT: f64 = 440.0;
    /// Bars beyond 2 to the power of this, or below its inverse, are cut; the ratio is printed
    /// beside them.
    const POWER: f64 = 6.0;
    let at = |ratio: f64| LABELS + PLOT * (ratio.log2().clamp(-POWER, POWER) + POWER) / (2.0 * POWER);
    let (mut body, mut y) = (String::new(), 56.0);
    let order = |figure: &&Figure<'_>| AREAS.iter().position(|(area, _)| figure.is_of(area)).unwrap_or(AREAS.len());
    let mut shown: Vec<&Figure<'_>> = figures.iter().filter(|figure| figure.ratio().is_some()).collect();
    shown.sort_by_key(order);
    let height = 70.0 + ROW * shown.len() as f64;
    for power in -6..=6 {
        let x = at(2f64.powi(power));
        line(&mut body, (x, 44.0), (x, height - 12.0), if power == 0 { INK } else { "#dddddd" });
        let label = if power < 0 { format!("1/{}", 1 << -power) } else { format!("{}", 1 << power) };
        word(&mut body, (x, 38.0), "middle", &label);
    }
    word(&mut body, (at(1.0) - 8.0, 18.0), "end", "the peer is faster");
    word(&mut body, (at(1.0) + 8.0, 18.0), "start", "Pinwheel is faster, by this factor");
    for figure in shown {
        let (Some(ratio), Some((peer, _))) = (figure.ratio(), figure.peer) else { continue };
        let (from, to) = (at(ratio.min(1.0)), at(ratio.max(1.0)));
        let colour = if ratio < 1.0 { BEHIND } else { AHEAD };
        word(&mut body, (LABELS - 8.0, y + 12.0), "end", &format!("{} · {peer}", figure.name));
        let _always_fits = writeln!(
            body,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            y + 2.0,
            (to - from).max(1.0),
            ROW - 4.0
        );
        word(&mut body, (LABELS + PLOT + 56.0, y + 12.0), "end", &number(ratio));
        y += ROW;
    }
    svg(LABELS + PLOT + 70.0, height, "Ratio of each peer's time to Pinwheel's", &body)
}

/// Figures whose names differ in one number: the time of each contender, by that number.
type Series<'a> = BTreeMap<String, BTreeMap<&'a str, BTreeMap<u64, f64>>>;

fn series<'a>(figures: &'a [Figure<'_>]) -> Series<'a> {
    let mut found: Series<'a> = BTreeMap::new();
    for figure in figures.iter().filter(|figure| figure.unit.starts_with("ns")) {
        let digits = |c: char| c.is_ascii_digit();
        let mut at = 0;
        while let Some(start) = figure.name[at..].find(digits).map(|found| at + found) {
            let end =
                figure.name[start..].find(|c: char| !digits(c)).map_or(figure.name.len(), |length| start + length);
            // The digits of `p99` are not a size.
            let is_quantile = figure.name[..start].ends_with('p');
            if let (Ok(size), false) = (figure.name[start..end].parse::<u64>(), is_quantile) {
                let key = format!("{}N{}, {}", &figure.name[..start], &figure.name[end..], figure.unit);
                let lines = found.entry(key).or_default();
                lines.entry("Pinwheel").or_default().insert(size, figure.ours);
                if let Some((peer, theirs)) = figure.peer {
                    lines.entry(peer).or_default().insert(size, theirs);
                }
            }
            at = end;
        }
    }
    found.values_mut().for_each(|lines| lines.retain(|_, points| points.len() > 1));
    found.retain(|_, lines| lines.len() > 1 && lines.contains_key("Pinwheel"));
    found
}

/// A small plot for each series, both axes logarithmic.
fn scaling(figures: &[Figure<'_>]) -> String {
    const WIDTH: f64 = 350.0;
    const HEIGHT: f64 = 220.0;
    const COLUMNS: usize = 3;
    let found = series(figures);
    let mut body = String::new();
    for (index, (name, lines)) in found.iter().enumerate() {
        let (left, top) = ((index % COLUMNS) as f64 * WIDTH, (index / COLUMNS) as f64 * HEIGHT);
        plot(name, lines, (left, top), &mut body);
    }
    let rows = found.len().div_ceil(COLUMNS).max(1) as f64;
    svg(WIDTH * COLUMNS as f64, HEIGHT * rows, "Times by size of the problem", &body)
}

fn plot(name: &str, lines: &BTreeMap<&str, BTreeMap<u64, f64>>, (left, top): (f64, f64), body: &mut String) {
    let points = || lines.values().flatten().map(|(size, time)| (*size as f64, time.max(1e-3)));
    let mut x_min = f64::MAX;
    let mut x_max = 0f64;
    let mut y_min = f64::MAX;
    let mut y_max = 0f64;
    for (x, y) in points() {
        (x_min, x_max, y_min, y_max) = (x_min.min(x), x_max.max(x), y_min.min(y), y_max.max(y));
    }
    // The axis begins and ends at a power of ten.
    let from = y_min.log10().floor() as i32;
    let to = (y_max.log10().ceil() as i32).max(from + 1);
    let x_of = |x: f64| left + 66.0 + 150.0 * (x / x_min).ln() / (x_max / x_min).ln();
    let y_of = |y: f64| top + 180.0 - 130.0 * (y.log10() - f64::from(from)) / f64::from(to - from);
    word(body, (left + 12.0, top + 24.0), "start", name);
    for power in from..=to {
        let y = 10f64.powi(power);
        line(body, (left + 66.0, y_of(y)), (left + 221.0, y_of(y)), if power == from { INK } else { "#dddddd" });
        word(body, (left + 60.0, y_of(y) + 4.0), "end", &format!("{y}"));
    }
    for x in points().map(|(x, _)| x as u64).collect::<std::collections::BTreeSet<_>>() {
        word(body, (x_of(x as f64), top + 201.0), "middle", &x.to_string());
    }
    // Ours last, on top of the others.
    let order = lines.iter().filter(|(name, _)| **name != "Pinwheel").chain(lines.get_key_value("Pinwheel"));
    let mut labels: Vec<f64> = Vec::new();
    for (index, (name, points)) in order.enumerate() {
        let colour = if *name == "Pinwheel" { SERIES[0] } else { SERIES[1 + index % (SERIES.len() - 1)] };
        let path: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_of(*x as f64), y_of(y.max(1e-3)))).collect();
        let _always_fits = writeln!(
            body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in points {
            let (x, y) = (x_of(*x as f64), y_of(y.max(1e-3)));
            let _always_fits = writeln!(body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let mut y = points.last_key_value().map_or(0.0, |(_, y)| y_of(y.max(1e-3)) + 4.0);
        while labels.iter().any(|taken| (taken - y).abs() < 12.0) {
            y += 12.0;
        }
        labels.push(y);
        let short: String = name.chars().take(20).collect();
        let _always_fits = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{y:.1}\" fill=\"{colour}\" font-size=\"10\">{short}</text>",
            left + 226.0
        );
    }
}
