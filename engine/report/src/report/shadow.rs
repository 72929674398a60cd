//! The comparison with the shadow, in a report.

use super::text::{duration_text, grouped, line};
use super::{interval_95, ratio, sum};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::ShadowView;
use pinwheel_engine::profile::DecoderKind;
use pinwheel_engine::record::DISAGREEMENTS;
use serde::Serialize;
use std::fmt::{self, Formatter};

/// Answers of the run compared with those of a second decoder, since the last shadow began.
#[derive(Clone, Debug, Serialize)]
pub struct ShadowReport {
    /// Name of the second decoder.
    pub decoder: &'static str,
    /// It got one shot in so many.
    pub one_in: u64,
    /// Its error model; `null`: that by which each shot was answered.
    pub model: Option<String>,
    /// Whether it was on at the end.
    pub is_on: bool,
    /// Shots copied for it.
    pub sampled: u64,
    /// Shots chosen but left out, because it was behind.
    pub left_out: u64,
    /// Shots that both decoders answered.
    pub compared: u64,
    /// Of these: with different observables.
    pub disagreements: u64,
    /// Share of the compared shots with the same observables; `null` without one.
    pub agreement: Option<f64>,
    /// Disagreements kept in the run's directory.
    pub disagreements_kept: u64,
    /// Not compared: the run answered with an error.
    pub path_errors: u64,
    /// Not compared: the second decoder found no answer.
    pub shadow_errors: u64,
    /// Not compared: of a model that was no longer in force, or that the second decoder refuses.
    pub other_model: u64,
    /// Not compared when the run ended.
    pub waiting: u64,
    /// Compared shots whose true observables are known.
    pub shots_with_observables: u64,
    /// Logical errors of the run among them.
    pub path: SideReport,
    /// Logical errors of the second decoder among them.
    pub shadow: SideReport,
    /// Latency of the compared shots in the run, from scheduled arrival to harvest.
    pub path_latency_ns: Histogram,
    /// Time that the second decoder took for each of them.
    pub decode_ns: Histogram,
    /// Share of a core that the comparison took.
    pub core_share: f64,
}

/// Logical errors of one of the two.
#[derive(Clone, Debug, Serialize)]
pub struct SideReport {
    /// Answers that differ from the true observables.
    pub logical_errors: u64,
    /// Logical errors divided by shots whose true observables are known; `null` without one.
    pub logical_error_rate: Option<f64>,
    /// The 95 % Wilson interval of that rate.
    pub logical_error_rate_ci95: Option<[f64; 2]>,
}

impl ShadowReport {
    pub(super) fn of(view: &ShadowView) -> ShadowReport {
        let judged = view.shots_with_observables;
        let side = |logical_errors| SideReport {
            logical_errors,
            logical_error_rate: ratio(logical_errors, judged),
            logical_error_rate_ci95: interval_95(logical_errors, judged),
        };
        let done = sum([view.compared, view.path_errors, view.shadow_errors, view.other_model]);
        ShadowReport {
            decoder: view.decoder.map_or("", DecoderKind::name),
            one_in: view.one_in,
            model: view.model.clone(),
            is_on: view.is_on,
            sampled: view.sampled,
            left_out: view.left_out,
            compared: view.compared,
            disagreements: view.disagreements,
            agreement: ratio(view.compared.saturating_sub(view.disagreements), view.compared),
            disagreements_kept: view.disagreements_kept,
            path_errors: view.path_errors,
            shadow_errors: view.shadow_errors,
            other_model: view.other_model,
            waiting: view.sampled.saturating_sub(done),
            shots_with_observables: judged,
            path: side(view.path_logical_errors),
            shadow: side(view.shadow_logical_errors),
            path_latency_ns: view.path_latency.clone(),
            decode_ns: view.decode.clone(),
            core_share: view.core_share,
        }
    }

    pub(super) fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ShadowReport { decoder, one_in, compared, disagreements, .. } = self;
        let by = self.model.as_ref().map_or_else(String::new, |model| format!(" by {model}"));
        writeln!(f, "\nShadow: {decoder}{by}, for one shot in {}", grouped(*one_in))?;
        line(f, "compared", grouped(*compared), "shots that both decoders answered")?;
        let kept = match self.disagreements_kept {
            0 => String::new(),
            kept => format!("; {} kept in {DISAGREEMENTS}", grouped(kept)),
        };
        let share = self.agreement.map_or_else(String::new, |share| format!("; {:.3} % agree", share * 100.0));
        line(f, "disagreements", grouped(*disagreements), format_args!("different observables{share}{kept}"))?;
        for (name, side) in [("wrong, run", &self.path), ("wrong, shadow", &self.shadow)] {
            if let Some((rate, [low, high])) = side.logical_error_rate.zip(side.logical_error_rate_ci95) {
                let told = format!("{rate:.3e} a shot; 95 % between {low:.3e} and {high:.3e}");
                line(f, name, grouped(side.logical_errors), told)?;
            }
        }
        if self.decode_ns.count() > 0 {
            let quantiles = |of: &Histogram| [0.5, 0.99].map(|quantile| duration_text(of.quantile_ns(quantile)));
            let ([own, own_tail], [path, path_tail]) = (quantiles(&self.decode_ns), quantiles(&self.path_latency_ns));
            let told = format!("its decode, p50; p99 {own_tail}; the run's latency: p50 {path}, p99 {path_tail}");
            line(f, "time", own, told)?;
        }
        line(f, "cost", format!("{:.2} %", self.core_share * 100.0), "of a core, beside the path")?;
        for (count, why) in [
            (self.left_out, "chosen shots left out: the shadow was behind; give it fewer"),
            (self.path_errors, "not compared: the run answered with an error"),
            (self.shadow_errors, "not compared: the shadow found no answer"),
            (self.other_model, "not compared: their model was no longer in force, or the shadow refuses it"),
            (self.waiting, "not compared: still waiting at the end"),
        ] {
            if count > 0 {
                line(f, "", grouped(count), why)?;
            }
        }
        Ok(())
    }
}
