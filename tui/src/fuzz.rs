//! The console without its command line and its loop, for the fuzz target `input_terminal` of `engine/fuzz`: bytes of a
//! terminal become keys and mouse events, which `update` applies to a synthetic engine's pictures.
//!
//! A root of its own beside `main.rs`, because the modules name each other from the crate's root; the program does
//! not contain it. The bytes go through a pseudo-terminal and the library that reads the real one.
#![no_main]
#![allow(dead_code, unused_imports, clippy::unwrap_used, reason = "harness; part of a program")]

mod named;
mod source;
mod model;
mod msg;
mod update;
mod effect;
mod keymap;
mod view;
mod widgets;
mod theme;
mod settings;
mod term;
mod tests;

use effect::Effect;
use model::Model;
use msg::{Finished, Msg};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile::OnHangup;
use rustix::pty::OpenptFlags;
use source::{Offer, Source};
use std::cell::OnceCell;
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;
use tests::synthetic::{Synthetic, SyntheticFaults, snapshot};
use theme::{Colour, Glyphs, Palette, Theme};

const THEME: Theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };
/// Longer than no time at all: with a timeout of zero the library reads nothing.
const GLANCE: Duration = Duration::from_micros(50);
/// Ends whatever the last bytes began: a paste, a mouse event, a report.
const END: &[u8] = b"\x1b[201~mMuc~~~~~~";

/// What is the same for each input.
struct Fixture {
    /// The end of the pseudo-terminal that keys are written to; the other end is standard input.
    keyboard: File,
    source: Synthetic,
    offers: Vec<Offer>,
    pictures: Vec<Snapshot>,
}

impl Fixture {
    fn new() -> Fixture {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let keyboard = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&keyboard).unwrap();
        rustix::pty::unlockpt(&keyboard).unwrap();
        let name = rustix::pty::ptsname(&keyboard, Vec::new()).unwrap();
        let console = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        rustix::stdio::dup2_stdin(&console).unwrap();
        crossterm::terminal::enable_raw_mode().unwrap();
        term::keys::never_wait().unwrap();
        let pictures = (1..=8).map(|tenths| snapshot(tenths, SyntheticFaults::All)).collect();
        let source = Synthetic::new();
        Fixture { keyboard: keyboard.into(), offers: source.offers(), source, pictures }
    }

    /// The messages that the console makes of `bytes`.
    fn messages(&mut self, bytes: &[u8]) -> Vec<Msg> {
        self.keyboard.write_all(bytes).unwrap();
        let mut messages = Vec::new();
        while crossterm::event::poll(GLANCE).unwrap() {
            messages.extend(term::keys::message(crossterm::event::read().unwrap()));
        }
        messages
    }
}

/// A console that shows a synthetic engine.
struct Console<'a> {
    model: Model,
    source: Synthetic,
    fixture: &'a Fixture,
    has_left: bool,
}

impl Console<'_> {
    fn take(&mut self, msg: Msg) {
        for effect in update::update(&mut self.model, msg) {
            match effect {
                Effect::ListOffers => self.take(Msg::Offers(self.fixture.offers.clone())),
                Effect::Execute(command, why) => {
                    let result = self.source.execute(&command, &why);
                    self.take(Msg::Executed { command, result });
                }
                Effect::LookAt(at_ns) => {
                    let past = self.source.past(at_ns).map(Box::new);
                    self.take(Msg::Past(past));
                }
                Effect::LookAfter { shown_ns, at_ns } => {
                    let past = self.source.past_after(shown_ns, at_ns).map(Box::new);
                    self.take(Msg::Past(past));
                }
                Effect::Redraw
                | Effect::LookUp(_)
                | Effect::CommandHosts(_)
                | Effect::DumpScreen
                | Effect::Capture(_)
                | Effect::Copy(_) => {}
                Effect::Leave(_) => self.has_left = true,
            }
        }
    }
}

/// The first byte chooses the screen's size; the others are typed, in pieces that a picture follows each.
fn any_terminal(fixture: &mut Fixture, bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let size = [(80, 24), (120, 40), (40, 10), (19, 4)][usize::from(first % 4)];
    let pieces: Vec<Vec<Msg>> = bytes.chunks(16).map(|piece| fixture.messages(piece)).collect();
    fixture.messages(END);
    let model = Model::new(THEME, size, OnHangup::Detach);
    let mut console = Console { model, source: fixture.source.clone(), fixture, has_left: false };
    let mut now_ns = 0;
    for (number, piece) in pieces.into_iter().enumerate() {
        now_ns += 100_000_000;
        let snapshot = fixture.pictures.get(number).cloned().map(Box::new);
        console.take(Msg::Snapshot { now_ns, snapshot, finished: Finished::No });
        for msg in piece {
            console.take(msg);
            if console.has_left {
                return;
            }
        }
        let area = ratatui::layout::Rect::new(0, 0, size.0, size.1);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        view::draw(&console.model, area, &mut buffer);
        let is_control = |cell: &ratatui::buffer::Cell| cell.symbol().chars().any(char::is_control);
        assert!(!buffer.content.iter().any(is_control), "a control character on the screen");
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static FIXTURE: std::cell::RefCell<OnceCell<Fixture>> = const { std::cell::RefCell::new(OnceCell::new()) };
    }
    FIXTURE.with_borrow_mut(|fixture| {
        fixture.get_or_init(Fixture::new);
        any_terminal(fixture.get_mut().unwrap(), bytes);
    });
});
