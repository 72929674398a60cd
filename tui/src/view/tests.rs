//! Pictures: each view as text and styles, at any size.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

mod cost;
mod narrow;
mod readings;

use super::draw;
use crate::keymap::bound::Hint;
use crate::keymap::key::Key;
use crate::model::choices::Panel;
use crate::model::{Model, View};
use crate::msg::{ConsoleCost, Finished, Msg};
use crate::source::offers_of;
use crate::source::past::Past;
use crate::tests::synthetic::looked_up;
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use crate::theme::{Colour, Glyphs, Palette, Theme, Tone};
use crate::update::update;
use pinwheel_engine::board::snapshot::{PairView, SiloView, SourceDecoder, SourceStream};
use pinwheel_engine::profile::{OnHangup, Profile};
use pinwheel_engine::streams::{DecoderState, SourceKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

const COLOUR: Theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };
const MONO: Theme = Theme { colour: Colour::None, ..COLOUR };
const ASCII: Theme = Theme { glyphs: Glyphs::Ascii, ..COLOUR };
const MONO_ASCII: Theme = Theme { colour: Colour::None, ..ASCII };
const TRUE_LIGHT: Theme = Theme { palette: Palette::Light, colour: Colour::True, ..COLOUR };
const INDEXED_BLIND: Theme = Theme { palette: Palette::ColourBlind, colour: Colour::Indexed, ..ASCII };
const TRUE_ASCII: Theme = Theme { colour: Colour::True, ..ASCII };
const INDEXED: Theme = Theme { colour: Colour::Indexed, ..COLOUR };
/// The key of each view, in the order of the views.
const VIEWS: [char; 20] =
    ['1', '2', '3', '4', '5', '6', '7', 'M', '8', 'N', '9', 't', 'r', 'e', 'c', 'v', 'u', 'w', '=', '0'];

/// A console after two seconds of pictures.
fn watched(theme: Theme, size: (u16, u16), trouble: SyntheticFaults) -> Model {
    let mut model = Model::new(theme, size, OnHangup::Detach);
    let lab = Profile::load("lab", None).unwrap().0;
    update(&mut model, Msg::Offers(offers_of(None, &lab)));
    for tenth in 1..=20 {
        feed(&mut model, tenth, trouble);
        if tenth == 5 {
            keys(&mut model, &[Key::Char('m')]);
        }
    }
    for brought in looked_up(trouble) {
        update(&mut model, Msg::LookedUp(brought));
    }
    let cost = ConsoleCost { cpu_ms_per_s: 3.6, draws_per_s: 10.0, bytes_per_s: 15_000.0, ..ConsoleCost::default() };
    update(&mut model, Msg::Cost(cost));
    model
}

fn feed(model: &mut Model, tenth: u64, trouble: SyntheticFaults) {
    let snapshot = Some(Box::new(snapshot(tenth, trouble)));
    update(model, Msg::Snapshot { now_ns: tenth * 100_000_000, snapshot, finished: Finished::No });
}

fn keys(model: &mut Model, keys: &[Key]) {
    for key in keys {
        update(model, Msg::Key(*key));
    }
}

fn drawn(model: &Model) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, model.size.0, model.size.1));
    draw(model, buffer.area, &mut buffer);
    buffer
}

/// The text, then one letter per cell for its style; rows in the plain style only are left out.
fn dump(model: &Model) -> String {
    let buffer = &drawn(model);
    let mut out = text(buffer);
    out.push_str("styles\n");
    for y in 0..buffer.area.height {
        let row: String = (0..buffer.area.width).map(|x| letter(model.theme, buffer, x, y)).collect();
        if !row.trim().is_empty() {
            let _always_fits = writeln!(out, "{y:>3} {}", row.trim_end());
        }
    }
    out
}

fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let row: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

fn letter(theme: Theme, buffer: &Buffer, x: u16, y: u16) -> char {
    let cell = &buffer[(x, y)];
    let tones = [
        (Tone::Dim, 'd'),
        (Tone::Good, 'g'),
        (Tone::Warn, 'y'),
        (Tone::Bad, 'r'),
        (Tone::Title, 'c'),
        (Tone::Accent, 'a'),
    ];
    let is = |(tone, _): &(Tone, char)| {
        let style = theme.style(*tone);
        style.fg == Some(cell.fg) && cell.modifier.contains(style.add_modifier)
    };
    let is_bold = |(tone, _): &&(Tone, char)| theme.style(*tone).add_modifier.contains(Modifier::BOLD);
    let found = tones.iter().filter(|tone| is(tone));
    let letter = match cell.fg {
        Color::Reset => ' ',
        // Two tones of one colour differ by weight: the matching weight identifies the tone.
        _ => found.clone().find(is_bold).or_else(|| found.clone().next()).map_or('?', |(_, letter)| *letter),
    };
    let modified = |modifier| cell.modifier.contains(modifier);
    match letter {
        _ if modified(Modifier::REVERSED) => '#',
        ' ' if modified(Modifier::UNDERLINED) => 'u',
        ' ' if modified(Modifier::BOLD) => 'b',
        ' ' if modified(Modifier::DIM) => '.',
        other => other,
    }
}

/// The cases in which each view is recorded.
const CASES: [((u16, u16), Theme, SyntheticFaults); 12] = [
    ((80, 24), COLOUR, SyntheticFaults::None),
    ((80, 24), MONO_ASCII, SyntheticFaults::All),
    ((120, 40), MONO, SyntheticFaults::All),
    ((120, 40), ASCII, SyntheticFaults::None),
    ((200, 60), COLOUR, SyntheticFaults::All),
    ((200, 60), MONO_ASCII, SyntheticFaults::None),
    ((120, 40), TRUE_LIGHT, SyntheticFaults::All),
    ((80, 24), INDEXED_BLIND, SyntheticFaults::None),
    ((80, 24), TRUE_ASCII, SyntheticFaults::All),
    ((120, 40), INDEXED, SyntheticFaults::None),
    ((200, 60), TRUE_LIGHT, SyntheticFaults::None),
    ((200, 60), INDEXED_BLIND, SyntheticFaults::All),
];

/// Each view at three sizes, as text and styles.
#[test]
fn views_look_as_recorded() {
    for (i, (size, theme, trouble)) in CASES.into_iter().enumerate() {
        for (view, key) in View::ALL.into_iter().zip(VIEWS) {
            let mut model = watched(theme, size, trouble);
            model.cursor.slot = 401;
            model.notice = None;
            keys(&mut model, &[Key::Char(key)]);
            insta::assert_snapshot!(format!("{view:?}_{}x{}_{i}", size.0, size.1), dump(&model));
        }
    }
}

/// A hidden panel is not drawn, the others are, and those that had no room get its rows.
#[test]
fn the_overview_leaves_hidden_panels_out_and_gives_others_their_rows() {
    let titles = [
        (Panel::Silos, "idle "),
        (Panel::Trends, "\n p99.9 "),
        (Panel::Latency, "latency 1 s"),
        (Panel::Streams, " streams: answered"),
        (Panel::Threads, "─ threads"),
    ];
    let shown = |model: &Model| {
        let text = text(&drawn(model));
        titles.into_iter().filter(|(_, title)| text.contains(title)).map(|(panel, _)| panel).collect::<Vec<_>>()
    };
    let mut wide = watched(COLOUR, (200, 60), SyntheticFaults::All);
    assert_eq!(shown(&wide), Panel::ALL);
    for (place, panel) in Panel::ALL.into_iter().enumerate() {
        wide.chosen.hidden[place] = true;
        assert!(!shown(&wide).contains(&panel), "{panel:?}");
        assert_eq!(shown(&wide).len(), Panel::ALL.len() - 1, "{panel:?}");
        wide.chosen.hidden[place] = false;
    }
    let mut narrow = watched(COLOUR, (80, 24), SyntheticFaults::None);
    assert!(!shown(&narrow).contains(&Panel::Latency));
    narrow.chosen.hidden[Panel::Silos as usize] = true;
    assert!(shown(&narrow).contains(&Panel::Latency));
    narrow.chosen.hidden = [true; Panel::ALL.len()];
    let text = text(&drawn(&narrow));
    assert!(shown(&narrow).is_empty() && text.contains("silo 0") && text.contains("incidents:"), "{text}");
}

/// The recorded cases cover each pair of size, number of colours and glyph set.
#[test]
fn each_pair_of_size_colours_and_glyphs_is_recorded() {
    let colours = [Colour::None, Colour::Sixteen, Colour::Indexed, Colour::True];
    let (sizes, glyphs) = ([(80, 24), (120, 40), (200, 60)], [Glyphs::Utf8, Glyphs::Ascii]);
    let is_there =
        |holds: &dyn Fn((u16, u16), Theme) -> bool| CASES.iter().any(|(size, theme, _)| holds(*size, *theme));
    for size in sizes {
        for colour in colours {
            assert!(is_there(&|at, theme| at == size && theme.colour == colour), "{size:?} {colour:?}");
        }
        for set in glyphs {
            assert!(is_there(&|at, theme| at == size && theme.glyphs == set), "{size:?} {set:?}");
        }
    }
    for colour in colours {
        for set in glyphs {
            assert!(is_there(&|_, theme| theme.colour == colour && theme.glyphs == set), "{colour:?} {set:?}");
        }
    }
}

#[test]
fn overlays_look_as_recorded() {
    let open: [(&str, &[Key]); 13] = [
        ("ask_drain", &[Key::Char('M'), Key::Char('d')]),
        ("kill", &[Key::Char('M'), Key::Char('K'), Key::Char('k'), Key::Char('i')]),
        ("why", &[Key::Char('H'), Key::Char('w'), Key::Char('t'), Key::Char('e'), Key::Char('a')]),
        ("chooser", &[Key::Char('p')]),
        ("ask_prod", &[Key::Char('p'), Key::Char('1')]),
        ("ask_quit", &[Key::Char('q')]),
        ("draining", &[Key::Char('q'), Key::Char('y')]),
        ("ask_force", &[Key::Char('q'), Key::Char('y'), Key::Char('q')]),
        ("palette", &[Key::Char(':'), Key::Char('p'), Key::Char('r'), Key::Char('o'), Key::Char('d')]),
        ("filter", &[Key::Char('2'), Key::Char('/'), Key::Char('d'), Key::Char('e'), Key::Char('c')]),
        ("filtered_slots", &[Key::Char('3'), Key::Char('/'), Key::Char('w'), Key::Char('r'), Key::Enter]),
        ("columns", &[Key::Char('2'), Key::Char('C'), Key::Down, Key::Down]),
        ("sorted", &[Key::Char('2'), Key::Char('S'), Key::Char('S')]),
    ];
    for (name, pressed) in open {
        let mut model = watched(COLOUR, (80, 24), SyntheticFaults::None);
        model.notice = None;
        keys(&mut model, pressed);
        insta::assert_snapshot!(format!("overlay_{name}"), dump(&model));
    }
}

#[test]
fn small_terminals_get_what_fits() {
    for size in [(79, 24), (40, 12), (20, 5), (19, 5), (12, 3)] {
        let model = watched(COLOUR, size, SyntheticFaults::All);
        insta::assert_snapshot!(format!("small_{}x{}", size.0, size.1), dump(&model));
    }
}

#[test]
fn no_size_panics() {
    for trouble in [SyntheticFaults::None, SyntheticFaults::All] {
        let mut model = watched(COLOUR, (80, 24), trouble);
        let mut empty = Model::new(COLOUR, (80, 24), OnHangup::Detach);
        for size in [1, 2, 3, 5, 8, 19, 20, 24, 40, 79, 80, 100, 146, 200, 300].map(|w| w as u16) {
            for height in [1, 2, 4, 5, 6, 12, 23, 24, 25, 33, 60, 100] {
                for key in VIEWS.map(Key::Char).into_iter().chain([Key::Char('p'), Key::Esc, Key::Char('q'), Key::Esc])
                {
                    for model in [&mut model, &mut empty] {
                        update(model, Msg::Resize { columns: size, rows: height });
                        update(model, Msg::Key(key));
                        drawn(model);
                    }
                }
            }
        }
    }
}

#[test]
fn engines_of_any_shape_draw() {
    for (threads, silos, workers, slots) in [(0, 0, 0, 0), (1, 1, 0, 0), (24, 4, 64, 8), (200, 16, 1, 65_536)] {
        let mut shaped = snapshot(5, SyntheticFaults::All);
        shaped.threads = vec![shaped.threads[0].clone(); threads];
        let mut silo = shaped.silos[0].clone();
        silo.workers = vec![silo.workers[0]; workers];
        silo.slots = (0..slots).map(|slot| silo.slots[slot % 1_024]).collect();
        shaped.silos = vec![silo; silos];
        for size in [(80, 24), (200, 60)] {
            let mut model = Model::new(COLOUR, size, OnHangup::Detach);
            let snapshot = Some(Box::new(shaped.clone()));
            update(&mut model, Msg::Snapshot { now_ns: 1, snapshot, finished: Finished::No });
            for key in VIEWS {
                keys(&mut model, &[Key::Char(key), Key::End, Key::PageUp]);
                assert!(text(&drawn(&model)).len() > 200);
            }
        }
    }
}

#[test]
fn silos_that_have_no_room_get_a_line_each_and_the_rest_are_counted() {
    for (silos, lines) in [(3, &["silo 1 ● 2", "silo 2 ● 2"][..]), (9, &["silo 1 ● 2", "7 more silos"])] {
        let mut model = Model::new(COLOUR, (80, 24), OnHangup::Detach);
        for tenth in 1..=20 {
            let mut shaped = snapshot(tenth, SyntheticFaults::None);
            shaped.silos = (0..silos).map(|id| SiloView { id, ..shaped.silos[0].clone() }).collect();
            let snapshot = Some(Box::new(shaped));
            update(&mut model, Msg::Snapshot { now_ns: tenth * 100_000_000, snapshot, finished: Finished::No });
        }
        let text = text(&drawn(&model));
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        assert!(text.contains("threads") && text.contains("none: no role panicked"), "{text}");
    }
}

#[test]
fn without_colour_no_cell_has_any_and_ascii_is_ascii() {
    for trouble in [SyntheticFaults::None, SyntheticFaults::All] {
        for key in VIEWS {
            let mut model = watched(MONO_ASCII, (200, 60), trouble);
            keys(&mut model, &[Key::Char(key)]);
            let buffer = drawn(&model);
            assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
            let text = text(&buffer);
            assert!(text.is_ascii());
            let unknown = text.matches('?').count();
            let utf8 = {
                let mut same = watched(MONO, (200, 60), trouble);
                keys(&mut same, &[Key::Char(key)]);
                self::text(&drawn(&same))
            };
            assert_eq!(unknown, utf8.matches('?').count(), "a glyph of view {key} has no stand-in");
        }
    }
}

#[test]
fn what_is_frozen_or_stale_says_so_and_nothing_in_it_is_green() {
    let mut frozen = watched(COLOUR, (80, 24), SyntheticFaults::None);
    keys(&mut frozen, &[Key::Char('f')]);
    feed(&mut frozen, 50, SyntheticFaults::None);
    let mut stale = watched(COLOUR, (80, 24), SyntheticFaults::None);
    update(&mut stale, Msg::Snapshot { now_ns: 5_000_000_000, snapshot: None, finished: Finished::No });
    for (model, mark) in [(frozen, "FROZEN 3.0s"), (stale, "STALE 3.0s")] {
        let buffer = drawn(&model);
        assert!(text(&buffer).lines().next().unwrap().contains(mark), "{mark}");
        assert!(buffer.content.iter().all(|cell| cell.fg != Color::Green), "{mark}");
    }
}

/// The time line of the past with notes, live and in a replay, and the input of a note.
#[test]
fn the_past_looks_as_recorded() {
    let past = |at: u64| Past {
        pictures: (at.saturating_sub(20)..=at).map(|tenths| snapshot(tenths, SyntheticFaults::None)).collect(),
        from_ns: snapshot(1, SyntheticFaults::None).at_ns,
        to_ns: snapshot(600, SyntheticFaults::None).at_ns,
        notes: vec![(snapshot(300, SyntheticFaults::None).at_ns, "pump on".to_owned())],
    };
    let mut live = watched(COLOUR, (80, 24), SyntheticFaults::None);
    update(&mut live, Msg::Past(Ok(Box::new(past(300)))));
    insta::assert_snapshot!("past_live_80x24", dump(&live));
    let mut replay = watched(MONO_ASCII, (120, 40), SyntheticFaults::None);
    update(&mut replay, Msg::Replay(0));
    update(&mut replay, Msg::Past(Ok(Box::new(past(90)))));
    keys(&mut replay, &[Key::Char('2')]);
    insta::assert_snapshot!("past_replay_120x40", dump(&replay));
    let mut note = watched(COLOUR, (80, 24), SyntheticFaults::None);
    keys(&mut note, &[Key::Char('n'), Key::Char('o'), Key::Char('k')]);
    assert!(text(&drawn(&note)).contains("ok_"));
}

#[test]
fn every_view_says_why_it_is_empty() {
    let mut model = Model::new(COLOUR, (80, 24), OnHangup::Detach);
    for (key, why) in [('1', "first picture"), ('2', "first picture"), ('3', "first picture"), ('5', "No profile")] {
        keys(&mut model, &[Key::Char(key)]);
        assert!(text(&drawn(&model)).contains(why), "view {key}");
    }
    let mut snapshot = snapshot(1, SyntheticFaults::None);
    snapshot.silos[0].rings.clear();
    (snapshot.streams, snapshot.alarms, snapshot.silos[0].workers) = (Vec::new(), Vec::new(), Vec::new());
    let snapshot = Some(Box::new(snapshot));
    update(&mut model, Msg::Snapshot { now_ns: 1, snapshot, finished: Finished::No });
    for (key, why, fill) in [
        ('t', "No stream yet", "--streams"),
        ('r', "No ring yet", "before the first shot"),
        ('4', "no device: its decode workers", "--device"),
        ('9', "none: no stall", "diagnostics"),
        ('e', "has no directory", "pinwheel check"),
        ('c', "Looking at this machine", "pinwheel cores"),
        ('v', "has no directory", "notes"),
        ('=', "No moment is marked", "Press m"),
    ] {
        keys(&mut model, &[Key::Char(key)]);
        let text = text(&drawn(&model));
        assert!(text.contains(why) && text.contains(fill), "view {key}: {text}");
    }
}

#[test]
fn footer_and_help_show_the_table() {
    let mut model = watched(COLOUR, (160, 200), SyntheticFaults::None);
    model.notice = None;
    keys(&mut model, &[Key::Char('?')]);
    let text = text(&drawn(&model));
    for binding in crate::keymap::TABLE {
        assert!(text.contains(binding.help), "{}", binding.help);
    }
    let footer = text.lines().last().unwrap();
    for Hint { keys, word, .. } in model.keymap.footer(model.scope()) {
        assert!(footer.contains(&format!("{keys} {word}")), "{word}");
    }
}

#[test]
fn the_tour_leaves_the_rows_above_it_to_the_view() {
    for size in [(80, 24), (200, 60)] {
        let mut model = watched(MONO, size, SyntheticFaults::None);
        keys(&mut model, &[Key::Char('?'), Key::Char('t'), Key::Char('2')]);
        insta::assert_snapshot!(format!("tour_{}x{}", size.0, size.1), dump(&model));
    }
}

/// The decoders of CUDA-Q's clients instead of streams: state, calls, replies, and who called.
#[test]
fn the_decoders_of_cuda_q_clients_are_shown_with_their_states_and_callers() {
    for size in [(80, 24), (120, 40)] {
        let mut model = watched(MONO, size, SyntheticFaults::All);
        let mut shown = snapshot(21, SyntheticFaults::All);
        shown.sources[0].kind = SourceKind::Cudaq;
        shown.sources[0].name = "cudaq:127.0.0.1:7000".to_owned();
        let states = DecoderState::ALL.into_iter().zip(0..);
        let decoders = states.map(|(state, place)| SourceStream {
            id: place,
            decoder: Some(SourceDecoder {
                number: i64::from(place) * 100 - 1,
                port: 7000,
                state,
                enqueues: 1_200 + u64::from(place),
                gets: 400,
                resets: 12,
                ok: 1_500,
                bad_request: u64::from(place),
                internal_error: 0,
                not_ready: 7 * u64::from(place),
                caller: (place > 0).then_some(0),
            }),
            ..SourceStream::default()
        });
        shown.sources[0].streams = decoders.collect();
        let snapshot = Some(Box::new(shown));
        update(&mut model, Msg::Snapshot { now_ns: 2_100_000_000, snapshot, finished: Finished::No });
        keys(&mut model, &[Key::Char('8')]);
        insta::assert_snapshot!(format!("decoders_{}x{}", size.0, size.1), dump(&model));
    }
}

#[test]
fn questions_name_the_users_own_keys() {
    let mut model = watched(MONO, (120, 40), SyntheticFaults::None);
    let own = r#"{ "question": { "confirm": ["Y"], "why": ["r"] }, "note": { "confirm": ["F2"] },
        "views": { "freeze": ["F5"], "quit": ["Q"] } }"#;
    model.keymap = std::rc::Rc::new(crate::keymap::bound::Keymap::from_text(own).unwrap());
    let asked: [(&[Key], &[&str]); 4] = [
        (&[Key::Char('Q')], &["Y: drain and quit    n or esc: go on    r: why"]),
        (&[Key::Char('H')], &["Y: yes    n or esc: no    r: why"]),
        (&[Key::Char('R')], &["F2: take it    esc: stay at"]),
        (&[Key::Char('M'), Key::Char('K')], &["then F2    esc: do not"]),
    ];
    for (pressed, texts) in asked {
        keys(&mut model, pressed);
        let shown = text(&drawn(&model));
        for text in texts {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        keys(&mut model, &[Key::Esc]);
    }
}

/// As another program may write it into a recording.
#[test]
fn a_chart_is_drawn_whatever_the_clock_of_the_recording_says() {
    let mut model = watched(MONO, (80, 24), SyntheticFaults::None);
    let mut hostile = snapshot(21, SyntheticFaults::None);
    hostile.clock.pair = Some(PairView { at_ns: 0, monotonic_ns: 0, utc_ns: u64::MAX, width_ns: 0 });
    let snapshot = Some(Box::new(hostile));
    update(&mut model, Msg::Snapshot { now_ns: 2_100_000_000, snapshot, finished: Finished::No });
    keys(&mut model, &[Key::Char('w')]);
    assert!(text(&drawn(&model)).contains("answers/s"));
}
