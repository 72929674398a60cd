//! Generates the book's page of figures and its plots from `BENCH` lines.
//!
//! Pure. Bounded by the lines. `main` writes the result after a full run; a test of package
//! `pinwheel` includes this file and compares its result for the stored lines with the files of the
//! book.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The subject of each area, in the order of the page.
const AREAS: [(&str, &str); 25] = [
    ("dispatch", "A shot's path from feed to harvest with a decoder that does nothing."),
    ("overhead", "The whole engine against a loop that only decodes."),
    ("scale", SCALE),
    ("window", "The last sliding window of a long experiment, and the last part of a stream, against the whole shot."),
    (
        "matching",
        "Matching of whole shots against the crate `stabilizer_qec` (feature `peers`); union-find against matching.",
    ),
    ("predecode", "Decoding with the predecoder against decoding without it."),
    ("frame", "One pass of a hot thread over roles that do nothing."),
    ("hops", "A message from feed through two roles and back, on two threads."),
    ("live", "A shot from another process and its answer."),
    (
        "cudaq",
        "A call of CUDA-Q's decoding protocol and its reply: the `enqueue_syndromes` that fills a volume of distance 3, \
         decode included, and `get_corrections`. `default`: the plan that the engine makes on two cores, all \
         roles on one, and a client that yields on the other. NVIDIA's own server on such a machine, built from cudaqx `ef991e97`, not in \
         the same run: `get_corrections` p50 213 µs, p99 255 µs, p99.9 585 µs by a bare client in C (10,000 shots of \
         distance 3); its transceivers sleep 50 µs between two polls.",
    ),
    ("ring", "One item through a ring between two threads."),
    ("queue", "One item through a bounded queue."),
    ("deque", "The deque of a worker of the task graph."),
    ("graph", "An empty task of the task graph, from submission to its end, on two workers."),
    ("arbiter", "A decision about who may write a page."),
    ("transfer", "A page of 4 KiB moved from one silo to another."),
    ("placement", "Choosing a silo for a stream. `seed-lowest-average`: the silo with the lowest average load."),
    (
        "hosts",
        "Which host decodes a stream. Simulated figures are not measurements: virtual time, the rules of placement as they \
         are, 10,000 streams (Zipf 1.1, at most a quarter of a host each) for ten minutes at 70 % load, links of 20 to 500 µs, \
         a host lost each minute; the second half of the time counts. Peer: the same hosts sharing nothing.",
    ),
    ("overflow", "Until no shot waits for a slot after a burst of three times what the device takes."),
    ("timer", "A million timers in a wheel."),
    ("histogram", "One value into a histogram."),
    ("scrub", "Going to an instant of a recording of an hour."),
    ("telemetry", "A run with watchdog, recorder and metrics against one without."),
    (
        "gpu",
        "A shot of 1,200 detectors through a GPU and back, by `pinwheel gpu-check --json`; peers by \
         `engine/kernels/round_trips.cu` on the same machine before and after (the least of six medians), which hand over \
         as many words and decode nothing. Busy: 64 workers, shots of 120 detectors. See [GPU](operate/gpu.md).",
    ),
    ("shadow", "A run that gives one shot in a hundred to a second decoder against one that does not."),
];

const SCALE: &str = "\
Shots per second, taken as fast as they come, and latency from the scheduled arrival with evenly
spaced arrivals at half of Pinwheel's capacity. The peer has the same decoder, arrivals and stamps.
Simulated points are not measurements: they are virtual time, computed from the costs in the last
table. The rows `scale/prediction` compare two-core points with their measurement, in the repetition
that other work disturbed least; the aim is a ratio between 0.8 and 1.2. The simulation leaves out
memory bandwidth, the order of a stream's answers, distant cores and preemption. Its decode workers
have a core each.";

/// A curve: its name in figures, its heading, whether its axis is logarithmic, and what runs.
const CURVES: [(&str, &str, bool, &str); 6] = [
    (
        "streams",
        "Streams",
        true,
        "A decoder that answers at once, all roles on one core. A profile accepts 1,024 streams at most.",
    ),
    ("d", "Distance", false, "Rotated surface codes of d rounds, noise 0.005, 4 streams, decoding on the second core."),
    (
        "load",
        "Load, % of Pinwheel's capacity",
        false,
        "d = 5, 4 streams, decoding on the second core. Above 100 % latency grows with the length of the run.",
    ),
    (
        "workers",
        "Decode workers",
        true,
        "d = 5, 4 streams. Measured on two cores: the second worker shares the core of the path.",
    ),
    ("silos", "Silos, a core each", true, "d = 5, 4 streams, all roles of a silo on one core."),
    ("null_workers", "Two threads and a decoder that answers at once", true, "Decoding on the second core, 4 streams."),
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

    /// The part of a curve that this figure is.
    fn place(&self) -> Option<Place<'_>> {
        let rest = self.name.strip_prefix("scale/")?;
        let (rest, is_simulated) = rest.strip_prefix("simulated_").map_or((rest, false), |rest| (rest, true));
        let parts = ["_p50", "_p99", "_p999"];
        let (rest, part) =
            (1..).zip(parts).find_map(|(part, tail)| Some((rest.strip_suffix(tail)?, part))).unwrap_or((rest, 0));
        let (curve, value) = rest.rsplit_once('_')?;
        Some(Place { curve, is_simulated, value: value.parse().ok()?, part })
    }

    fn is_of(&self, area: &str) -> bool {
        self.name.strip_prefix(area).is_some_and(|rest| rest.starts_with(['/', '_']))
    }
}

/// The place of a figure in a curve.
struct Place<'a> {
    curve: &'a str,
    is_simulated: bool,
    /// Where on the axis.
    value: u64,
    /// 0: time of a shot; then p50, p99 and p99.9.
    part: usize,
}

/// Files of the book by name: the page and three plots.
pub fn files(lines: &str) -> [(&'static str, String); 4] {
    let figures: Vec<Figure<'_>> = lines.lines().filter_map(Figure::of).collect();
    let (scale, others): (Vec<_>, Vec<_>) =
        lines.lines().filter_map(Figure::of).partition(|figure| figure.is_of("scale"));
    [
        ("BENCHMARKS.md", page(lines, &figures)),
        ("benchmarks-scaling.svg", scaling(&others)),
        // What is simulated took no time.
        (
            "benchmarks-ratios.svg",
            ratios(&others.into_iter().filter(|figure| !is_simulated(figure)).collect::<Vec<_>>()),
        ),
        ("benchmarks-scale.svg", scale_plots(&scale)),
    ]
}

/// Whether a figure is of the simulation of hosts.
fn is_simulated(figure: &Figure<'_>) -> bool {
    figure.name.starts_with("hosts/simulated")
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
         cargo bench -p pinwheel-bench -- --pages     # every area, then this page from the result\n\
         cargo bench -p pinwheel-bench -- --pages scale  # this area; the lines of the others stay\n```\n\n",
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
        if let Some(note) = head(&format!("area {area}")) {
            text.push_str(&format!("Measured apart from the other areas: {note}\n\n"));
        }
        if area == "scale" {
            text.push_str("![Throughput and latency by size](benchmarks-scale.svg)\n\n");
            curve_tables(figures, &mut text);
        }
        let mut rows = rows.filter(|figure| figure.place().is_none()).peekable();
        if rows.peek().is_none() {
            continue;
        }
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

/// A curve's points: for each place on its axis, measured before simulated, the times of each part,
/// ours and the peer's.
type Points = BTreeMap<(bool, u64), [(f64, f64); 4]>;

fn points(figures: &[Figure<'_>], curve: &str) -> Points {
    let mut found = Points::new();
    for figure in figures {
        let Some(Place { is_simulated, value, part, .. }) = figure.place().filter(|place| place.curve == curve) else {
            continue;
        };
        let row = found.entry((is_simulated, value)).or_insert([(f64::NAN, f64::NAN); 4]);
        row[part] = (figure.ours, figure.peer.map_or(f64::NAN, |(_, theirs)| theirs));
    }
    found
}

fn curve_tables(figures: &[Figure<'_>], text: &mut String) {
    for (curve, title, _, what) in CURVES {
        let points = points(figures, curve);
        if points.is_empty() {
            continue;
        }
        text.push_str(&format!(
            "### {title}\n\n{what}\n\n| {} | k shots/s | peer | ratio | p50, µs | peer | p99, µs | peer | p99.9, µs | peer |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            curve.trim_start_matches("null_")
        ));
        for ((is_simulated, value), parts) in points {
            let [(ours, theirs), latencies @ ..] = parts;
            let name = format!("{value}{}", if is_simulated { ", simulated" } else { "" });
            let ratio = number(theirs / ours);
            text.push_str(&format!("| {name} | {} | {} | {ratio} |", number(1e6 / ours), number(1e6 / theirs)));
            for (ours, theirs) in latencies {
                text.push_str(&format!(" {} | {} |", number(ours / 1e3), number(theirs / 1e3)));
            }
            text.push('\n');
        }
        text.push('\n');
    }
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
    let is_by_size = |figure: &&Figure<'_>| figure.unit.starts_with("ns") || is_simulated(figure);
    for figure in figures.iter().filter(is_by_size) {
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

/// A line of a chart.
struct Curve {
    label: String,
    colour: &'static str,
    width: f64,
    is_simulated: bool,
    points: Vec<(f64, f64)>,
}

/// Two charts for each curve: throughput and latency, ours blue, the peer orange, simulated dashed.
fn scale_plots(figures: &[Figure<'_>]) -> String {
    const WIDTH: f64 = 500.0;
    const HEIGHT: f64 = 270.0;
    let (mut body, mut top) = (String::new(), 0.0);
    for (curve, title, is_logarithmic, _) in CURVES {
        let points = points(figures, curve);
        if points.len() < 2 {
            continue;
        }
        let mut charts: [Vec<Curve>; 2] = [Vec::new(), Vec::new()];
        for (part, what, width) in [(0, "", 2.5), (1, "p50", 2.5), (2, "p99", 1.5), (3, "p99.9", 0.8)] {
            for (is_simulated, is_ours) in [(false, false), (false, true), (true, false), (true, true)] {
                let at = |((simulated, value), parts): (&(bool, u64), &[(f64, f64); 4])| {
                    let time = if is_ours { parts[part].0 } else { parts[part].1 };
                    let y = if part == 0 { 1e6 / time } else { time / 1e3 };
                    (*simulated == is_simulated && y.is_finite() && y > 0.0).then_some((*value as f64, y))
                };
                let points: Vec<(f64, f64)> = points.iter().filter_map(at).collect();
                let name = if is_ours { "Pinwheel" } else { "crossbeam" };
                let how = if is_simulated { ", simulated" } else { "" };
                let label = format!("{name} {what}{how}").replace(" ,", ",");
                let colour = if is_ours { SERIES[0] } else { SERIES[1] };
                // With the load only the latency varies.
                if !points.is_empty() && (curve, part) != ("load", 0) {
                    charts[part.min(1)].push(Curve { label, colour, width, is_simulated, points });
                }
            }
        }
        for (index, (what, lines)) in ["thousand shots a second", "latency, µs"].iter().zip(&charts).enumerate() {
            let has_simulated = lines.iter().any(|line| line.is_simulated);
            let how = if has_simulated { " (dashed: simulated)" } else { "" };
            if !lines.is_empty() {
                let place = (index as f64 * WIDTH, top);
                chart(&format!("{title}: {what}{how}"), lines, is_logarithmic, place, &mut body);
            }
        }
        top += HEIGHT;
    }
    svg(2.0 * WIDTH, top.max(HEIGHT), "Throughput and latency by size", &body)
}

fn chart(title: &str, lines: &[Curve], is_logarithmic: bool, (left, top): (f64, f64), body: &mut String) {
    const PLOT: (f64, f64) = (260.0, 180.0);
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let x = |x: f64| if is_logarithmic { x.ln() } else { x };
    let (x_min, x_max) = all().fold((f64::MAX, f64::MIN), |(a, b), (at, _)| (a.min(x(at)), b.max(x(at))));
    let (y_min, y_max) = all().fold((f64::MAX, f64::MIN), |(a, b), (_, y)| (a.min(y), b.max(y)));
    let from = y_min.log10().floor() as i32;
    let to = (y_max.log10().ceil() as i32).max(from + 1);
    let x_of = |at: f64| left + 70.0 + PLOT.0 * (x(at) - x_min) / (x_max - x_min).max(1e-9);
    let y_of = |y: f64| top + 226.0 - PLOT.1 * (y.log10() - f64::from(from)) / f64::from(to - from);
    word(body, (left + 12.0, top + 24.0), "start", title);
    for power in from..=to {
        let y = 10f64.powi(power);
        line(
            body,
            (left + 70.0, y_of(y)),
            (left + 75.0 + PLOT.0, y_of(y)),
            if power == from { INK } else { "#dddddd" },
        );
        word(body, (left + 64.0, y_of(y) + 4.0), "end", &format!("{y}"));
    }
    for at in all().map(|(at, _)| at as u64).collect::<BTreeSet<_>>() {
        word(body, (x_of(at as f64), top + 246.0), "middle", &at.to_string());
    }
    let mut labels: Vec<(f64, &str, &str)> = Vec::new();
    for Curve { label, colour, width, is_simulated, points } in lines {
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y))).collect();
        let dashes = if *is_simulated { " stroke-dasharray=\"6 4\"" } else { "" };
        let _always_fits = writeln!(
            body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>",
            path.join(" ")
        );
        let fill = if *is_simulated { "#ffffff" } else { colour };
        for (x, y) in points {
            let _always_fits = writeln!(
                body,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{fill}\" stroke=\"{colour}\"/>",
                x_of(*x),
                y_of(*y)
            );
        }
        // A line that a simulated one goes on from has its name there.
        if let Some((_, y)) = points.last().filter(|(at, _)| x(*at) >= x_max) {
            labels.push((y_of(*y) + 4.0, label, colour));
        }
    }
    labels.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let mut least = f64::MIN;
    for (y, label, colour) in labels {
        let y = y.max(least);
        least = y + 12.0;
        let _always_fits = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{y:.1}\" fill=\"{colour}\" font-size=\"10\">{label}</text>",
            left + 84.0 + PLOT.0
        );
    }
}
