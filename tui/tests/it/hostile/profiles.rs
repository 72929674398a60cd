//! Profiles: `lab` with numbers, words, lines and bytes changed.

use super::{Campaign, Running, is_sound, ran};
use crate::world::{World, engine, lab_with};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "8",
    "63",
    "64",
    "65",
    "-1",
    "1024",
    "65537",
    "1000000000",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "0.5",
    "1e308",
];

/// Ranges of the text that are numbers, and those that are words.
fn tokens(text: &str, is_part: impl Fn(char) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), '\n')]) {
        match (is_part(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                found.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn changed(campaign: &mut Campaign, text: &str) -> Vec<u8> {
    let mut text = text.to_owned();
    for _ in 0..=campaign.below(3) {
        let mut lines: Vec<&str> = text.lines().collect();
        match campaign.below(7) {
            // Most draws keep the grammar: what parses must be judged field by field.
            0..=2 => {
                let numbers = tokens(&text, |c| c.is_ascii_digit() || c == '.');
                let place = campaign.pick(&numbers).clone();
                let number = campaign.pick(&NUMBERS);
                text.replace_range(place, number);
            }
            3 | 4 => {
                let words = tokens(&text, |c| c.is_ascii_alphanumeric() || c == '_');
                let word = text[campaign.pick(&words).clone()].to_owned();
                let place = campaign.pick(&words).clone();
                text.replace_range(place, &word);
            }
            5 => {
                let line = campaign.below(lines.len());
                lines.insert(campaign.below(lines.len()), lines[line]);
                text = lines.join("\n");
            }
            _ => {
                lines.remove(campaign.below(lines.len()));
                text = lines.join("\n");
            }
        }
    }
    let mut bytes = text.into_bytes();
    if campaign.below(4) == 0 {
        campaign.damage(&mut bytes);
    }
    bytes
}

#[test]
fn a_changed_profile_is_refused_in_words_or_it_runs() {
    let _one = engine();
    let mut campaign = Campaign::new("profiles", "profiles", 300);
    // Without the comments: a change there proves nothing.
    let lab = lab_with(&[]);
    let lab: Vec<&str> = lab.lines().collect();
    let lab: Vec<&str> = lab.iter().map(|line| line.split("//").next().unwrap().trim_end()).collect();
    let lab = lab.join("\n");
    for _ in 0..campaign.amount {
        let world = World::new();
        let text = changed(&mut campaign, &lab);
        world.put("profiles/changed.ron", &text);
        let said = ran(&world, "profiles validate changed --profiles profiles --json");
        is_sound(&said, &[0, 1, 2]);
        let words = "run --profile changed --profiles profiles --rate 200 --count 20 --logs logs --json";
        let mut running = Running::start(&world, words);
        // A profile may ask for arrivals that take hours: then it must end when it is told to.
        let from = Instant::now();
        while running.child.try_wait().unwrap().is_none() && from.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal(Signal::TERM);
        let ended = running.end();
        let shown = String::from_utf8_lossy(&text).into_owned();
        assert!(ended.status.is_some(), "{shown}\n{}", ended.err);
        // What validates may still need a machine that this one is not; what does not validate never starts.
        is_sound(&ended, if said.status == Some(0) { &[0, 1, 2, 143] } else { &[2] });
    }
    campaign.done();
}
