//! Keys, and their spelling: one for key files and documents, a shorter one on the screen.
//!
//! Pure. Each key has one spelling to read and one to write.

/// A key. Function keys count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, with shift applied.
    Char(char),
    /// Control and a lower-case letter.
    Ctrl(char),
    Tab,
    BackTab,
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Delete,
    F(u8),
}

/// Keys without a visible character, by name.
const NAMED: [(&str, Key); 15] = [
    ("tab", Key::Tab),
    ("shift-tab", Key::BackTab),
    ("enter", Key::Enter),
    ("esc", Key::Esc),
    ("backspace", Key::Backspace),
    ("up", Key::Up),
    ("down", Key::Down),
    ("left", Key::Left),
    ("right", Key::Right),
    ("pgup", Key::PageUp),
    ("pgdn", Key::PageDown),
    ("home", Key::Home),
    ("end", Key::End),
    ("space", Key::Char(' ')),
    ("delete", Key::Delete),
];

impl Key {
    /// Parses a key: `q`, `^c`, `ctrl-c`, `F5`, `space`, `pgup`.
    pub fn parse(text: &str) -> Option<Key> {
        let mut letters = text.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            return Some(Key::Char(letter));
        }
        if let Some((_, key)) = NAMED.into_iter().find(|(name, _)| *name == text) {
            return Some(key);
        }
        let control = text.strip_prefix("ctrl-").or_else(|| text.strip_prefix('^'));
        if let Some(letter) = control.filter(|rest| rest.chars().count() == 1).and_then(|rest| rest.chars().next()) {
            return Some(Key::Ctrl(letter.to_ascii_lowercase()));
        }
        let number = text.strip_prefix('F').and_then(|number| number.parse::<u8>().ok());
        number.filter(|number| (1..=24).contains(number)).map(Key::F)
    }

    /// Spelling in plain letters, for files and documents.
    pub fn spelled(self) -> String {
        let named = NAMED.iter().find(|(_, key)| *key == self);
        match (self, named) {
            (_, Some((name, _))) => (*name).to_owned(),
            (Key::Char(letter), None) => letter.to_string(),
            (Key::Ctrl(letter), None) => format!("ctrl-{letter}"),
            (Key::F(number), None) => format!("F{number}"),
            (_, None) => String::new(),
        }
    }

    /// Spelling in footer and help.
    pub fn label(self) -> String {
        match self {
            Key::Ctrl(letter) => format!("^{}", letter.to_ascii_uppercase()),
            Key::Up => "↑".to_owned(),
            Key::Down => "↓".to_owned(),
            Key::Left => "←".to_owned(),
            Key::Right => "→".to_owned(),
            Key::Delete => "del".to_owned(),
            key => key.spelled(),
        }
    }
}
