//! The last row: the keys of the current scope, or a notice; always the cost of the console.
//!
//! The cost has a field of fixed width, so that the keys do not move. Without room, keys are left
//! out from the last one on, except help and quit; a notice without room takes rows above.

use crate::keymap::Action;
use crate::keymap::bound::Hint;
use crate::model::target::Target;
use crate::model::{Model, Notice, NoticeKind, View};
use crate::msg::ConsoleCost;
use crate::theme::Tone;
use crate::widgets::format::{bytes_per_s, percent};
use crate::widgets::pen::Pen;

/// Columns of the short form of the cost: `100% 1.2MB/s`.
const COST: u16 = 12;
/// Columns of the long form of the cost.
const COST_WORDS: u16 = 44;
/// Fewest columns for the cost; below, the keys have the whole row.
const COST_FROM: u16 = 40;
/// A notice takes at most the rows of the screen divided by this.
const NOTICE_SHARE: u16 = 2;

/// Draws the last rows of the whole screen.
pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    let (width, last) = (pen.width(), pen.height().saturating_sub(1));
    let mut kept = if width < COST_FROM { 0 } else { COST };
    if let (Some(notice), None) = (&model.notice, &model.overlay) {
        sentence(notice, kept, pen);
    } else {
        let hints = model.keymap.footer(model.scope());
        // One column before the keys and one after them, in place of the two after the last.
        if hints.iter().map(length).sum::<u16>() + COST_WORDS <= width {
            kept = COST_WORDS + 1;
        }
        keys(&hints, &mut pen.part(0, last, width - kept, 1));
    }
    if kept > 0 {
        pen.put_right(width - kept, width, last, &cost(&model.console_cost, kept), Tone::Dim);
    }
}

/// Columns of an entry with the two after it.
fn length(hint: &Hint) -> u16 {
    u16::try_from(hint.keys.chars().count() + hint.word.len() + 3).unwrap_or(u16::MAX)
}

fn keys(hints: &[Hint], pen: &mut Pen<'_>) {
    // One column before the first entry; the two after the last one may be missing.
    let room = pen.width() + 1;
    let must = |hint: &Hint| matches!(hint.action, Action::Show(View::Help) | Action::Quit);
    let mut needed: u16 = hints.iter().map(length).sum();
    let mut shown = vec![true; hints.len()];
    for (at, hint) in hints.iter().enumerate().rev() {
        if needed > room && !must(hint) {
            shown[at] = false;
            needed -= length(hint);
        }
    }
    let mut x = 1;
    for (hint, _) in hints.iter().zip(shown).filter(|(_, is_shown)| *is_shown) {
        // One entry stands for nine digits, so a click on it is ambiguous.
        if !matches!(hint.action, Action::TakeNumber(_)) {
            pen.target(x, 0, length(hint) - 2, Target::Do(hint.action));
        }
        x = pen.put(x, 0, &hint.keys, Tone::Accent);
        x = pen.put(x + 1, 0, hint.word, Tone::Plain) + 2;
    }
}

/// Wraps a notice over several rows: a cut refusal would be misleading.
fn sentence(notice: &Notice, kept: u16, pen: &mut Pen<'_>) {
    let (mark, tone) = match notice.kind {
        NoticeKind::Refused => ('▲', Tone::Warn),
        NoticeKind::Done => ('✔', Tone::Accent),
    };
    let text = format!("{mark} {}", notice.text);
    let (width, height) = (pen.width() - kept, pen.height());
    let rows = Pen::rows_wrapped(width, 1, &text).min((height / NOTICE_SHARE).max(1));
    pen.rows(height - rows, height).blank();
    pen.part(0, height - rows, width, rows).put_wrapped(1, 0, &text, tone);
}

/// Cost of the console: share of a core, frames and bytes per second.
fn cost(cost: &ConsoleCost, room: u16) -> String {
    let (cpu, bytes) = (percent(cost.cpu_ms_per_s / 1e3), bytes_per_s(cost.bytes_per_s));
    match room {
        COST => format!("{cpu} {bytes}"),
        _ => format!("console {cpu} of a core, {:.0} frames/s, {bytes}", cost.draws_per_s),
    }
}

#[cfg(test)]
mod tests {
    use super::{COST, COST_WORDS, cost};
    use crate::msg::ConsoleCost;

    #[test]
    fn the_cost_has_room_whatever_it_is() {
        let sizes = [0.0, 0.004, 9.96, 99.4, 999.4, 9_960.0, 999_400.0, 99e6, 999e6];
        for cpu_ms_per_s in [0.0, 0.04, 3.6, 99.4, 99.6, 999.0, 1_000.0] {
            for bytes_per_s in sizes {
                let of = ConsoleCost { cpu_ms_per_s, draws_per_s: 30.0, bytes_per_s, ..ConsoleCost::default() };
                for room in [COST, COST_WORDS] {
                    let text = cost(&of, room);
                    assert!(text.chars().count() <= usize::from(room), "{text}");
                }
            }
        }
        let of = ConsoleCost { cpu_ms_per_s: 3.6, draws_per_s: 9.9, bytes_per_s: 2_345.0, ..ConsoleCost::default() };
        assert_eq!(cost(&of, COST), "0.4% 2.3kB/s");
        assert_eq!(cost(&of, COST_WORDS), "console 0.4% of a core, 10 frames/s, 2.3kB/s");
    }
}
