//! The figures of two runs side by side, as `pinwheel compare` computes them.
//!
//! Pure.

use super::super::compare::{Comparison, Difference, Rate};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_report::page::{Column, Markup};
use pinwheel_report::report::duration_text;

/// Writes the section. `names` are those of this run and of the other one.
pub fn write(compared: &Comparison, names: [&str; 2], page: &mut Markup) {
    page.section("Compared with another run");
    page.facts(&[("this run", names[0].to_owned()), ("other run", names[1].to_owned())]);
    page.caption("Two rates differ if their 95 % intervals are disjoint.");
    let columns =
        [Column::Text("rate"), Column::Number("this run"), Column::Number("other run"), Column::Text("verdict")];
    let rate = |row: &Rate| vec![row.words(), row.in_run(0), row.in_run(1), row.verdict().to_owned()];
    // Nearly all shots miss the shortest deadlines: that says nothing of either run.
    let is_shown = |row: &&Rate| row.differs || row.rate.iter().flatten().any(|rate| *rate < 0.99 || *rate > 1.0);
    page.table(&columns, &compared.rates.iter().filter(is_shown).map(rate).collect::<Vec<_>>());
    let columns = [
        Column::Text("time"),
        Column::Number("p50, this"),
        Column::Number("other"),
        Column::Number("p99, this"),
        Column::Number("other"),
        Column::Number("p99.9, this"),
        Column::Number("other"),
        Column::Number("distance"),
    ];
    let times = compared.histograms.iter().map(|row| {
        let time = |times: &Histogram, q: f64| {
            if times.count() > 0 { duration_text(times.quantile_ns(q)) } else { "–".to_owned() }
        };
        let quantiles = [0.5, 0.99, 0.999].into_iter().flat_map(|q| [time(&row.one, q), time(&row.other, q)]);
        let distance = row.distance.map_or_else(|| "–".to_owned(), |distance| format!("{distance:.3}"));
        [row.name.replace('_', " ")].into_iter().chain(quantiles).chain([distance]).collect()
    });
    page.table(&columns, &times.collect::<Vec<Vec<String>>>());
    page.caption(
        "Distance: the largest difference of the two distribution functions, 0 to 1 (Kolmogorov and Smirnov).",
    );
    let profile =
        compared.profile.iter().map(|change| vec![change.field.clone(), change.from.clone(), change.to.clone()]);
    differences("Profile", profile.collect(), page);
    differences("Input", rows(&compared.inputs), page);
    differences("Environment", rows(&compared.environment), page);
    page.list(&compared.missing);
    page.close("section");
}

fn rows(differences: &[Difference]) -> Vec<Vec<String>> {
    differences.iter().map(|row| vec![row.what.clone(), row.one.clone(), row.other.clone()]).collect()
}

fn differences(what: &str, rows: Vec<Vec<String>>, page: &mut Markup) {
    if !rows.is_empty() {
        page.element("h3", "", &format!("{what}: what differs"));
        page.table(&["field", "this run", "other run"].map(Column::Text), &rows);
    }
}
