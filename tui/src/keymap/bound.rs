//! The key table with the keys in force, for dispatch, footer, help and palette.
//!
//! Built once when the console starts; shared by reference. Bounded by the table.

use super::file::{self, KeysError};
use super::{Action, Binding, Footer, Scope, TABLE};
use crate::keymap::key::Key;

/// The keys of each row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap(Vec<Vec<Key>>);

/// One entry of the footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    pub keys: String,
    /// Its word in the footer.
    pub word: &'static str,
    pub action: Action,
}

impl Default for Keymap {
    fn default() -> Keymap {
        Keymap(TABLE.iter().map(|binding| binding.keys.to_vec()).collect())
    }
}

impl Keymap {
    /// The table with the keys that `text` rebinds.
    ///
    /// # Errors
    /// The file's first error, in one sentence; no key of the file is used then.
    pub fn from_text(text: &str) -> Result<Keymap, KeysError> {
        let mut keymap = Keymap::default();
        for (row, keys) in file::read(text)? {
            keymap.0[row] = keys;
        }
        for (row, binding) in TABLE.iter().enumerate() {
            for key in &keymap.0[row] {
                let other = keymap.rows(binding.scope).find(|(other, keys)| *other != row && keys.contains(key));
                if let Some((other, _)) = other {
                    return Err(KeysError::Twice {
                        key: key.spelled(),
                        scope: binding.scope.name(),
                        first: super::name::action(binding.action),
                        second: super::name::action(TABLE[other].action),
                    });
                }
            }
        }
        Ok(keymap)
    }

    fn rows(&self, scope: Scope) -> impl Iterator<Item = (usize, &[Key])> {
        let rows = TABLE.iter().zip(&self.0).enumerate();
        rows.filter(move |(_, (binding, _))| binding.scope == scope).map(|(row, (_, keys))| (row, keys.as_slice()))
    }

    /// Whether `scope` itself binds `key`.
    pub fn binds(&self, scope: Scope, key: Key) -> bool {
        self.rows(scope).any(|(_, keys)| keys.contains(&key))
    }

    pub fn action(&self, scope: Scope, key: Key) -> Option<Action> {
        let mut scope = Some(scope);
        while let Some(here) = scope {
            if let Some((row, keys)) = self.rows(here).find(|(_, keys)| keys.contains(&key)) {
                let place = keys.iter().position(|bound| *bound == key).unwrap_or(0);
                return Some(resolve(TABLE[row].action, key, place));
            }
            scope = here.outer();
        }
        None
    }

    pub fn footer(&self, scope: Scope) -> Vec<Hint> {
        let mut entries = Vec::new();
        let mut scope = Some(scope);
        while let Some(here) = scope {
            for (row, keys) in self.rows(here) {
                if let Footer::Word(word) = TABLE[row].footer {
                    let (keys, action) = (short(&TABLE[row], keys), TABLE[row].action);
                    entries.push(Hint { keys, word, action });
                }
            }
            scope = here.outer();
        }
        entries
    }

    pub fn help(&self, scope: Scope) -> impl Iterator<Item = Help<'_>> {
        self.rows(scope).map(|(row, keys)| Help { row, keys })
    }

    /// The rows of `scope` that have a name in the palette: action, keys, help text.
    pub fn commands(&self, scope: Scope) -> impl Iterator<Item = (Action, String, &'static str)> {
        let by_hand =
            |action| matches!(action, Action::Move(_) | Action::TakeNumber(_) | Action::Palette | Action::Suspend);
        let rows = self.rows(scope).filter(move |(row, _)| !by_hand(TABLE[*row].action));
        rows.map(|(row, keys)| (TABLE[row].action, long(&TABLE[row], keys), TABLE[row].help))
    }

    /// All keys of `action` in `scope`, in the screen's spelling: `y or enter`.
    pub fn any_key(&self, scope: Scope, action: Action) -> String {
        let row = self.rows(scope).find(|(row, _)| TABLE[*row].action == action);
        let labels = row.into_iter().flat_map(|(_, keys)| keys).map(|key| key.label());
        labels.collect::<Vec<_>>().join(" or ")
    }

    /// The first key of `action` in `scope`, in the screen's spelling.
    pub fn first_key(&self, scope: Scope, action: Action) -> String {
        let row = self.rows(scope).find(|(row, _)| TABLE[*row].action == action);
        row.and_then(|(_, keys)| keys.first()).map_or_else(String::new, |key| key.label())
    }
}

/// A row of help. Its keys are spelled on request: only few rows of a long page are visible.
#[derive(Clone, Copy, Debug)]
pub struct Help<'a> {
    row: usize,
    keys: &'a [Key],
}

impl Help<'_> {
    /// The keys, in help's spelling.
    pub fn keys(self) -> String {
        long(&TABLE[self.row], self.keys)
    }

    pub fn what(self) -> &'static str {
        TABLE[self.row].help
    }
}

/// For a row of nine digits, the index of the key is the number.
fn resolve(action: Action, key: Key, place: usize) -> Action {
    match (action, key) {
        (Action::TakeNumber(_), Key::Char(digit)) if digit.is_ascii_digit() => {
            Action::TakeNumber(digit.to_digit(10).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0))
        }
        (Action::TakeNumber(_), _) => Action::TakeNumber(u8::try_from(place + 1).unwrap_or(u8::MAX)),
        (other, _) => other,
    }
}

fn short(binding: &Binding, keys: &[Key]) -> String {
    match (binding.action, keys) {
        (Action::TakeNumber(_), keys) if keys == binding.keys => "1-9".to_owned(),
        (_, [first, ..]) => first.label(),
        (_, []) => String::new(),
    }
}

fn long(binding: &Binding, keys: &[Key]) -> String {
    match binding.action {
        Action::TakeNumber(_) if keys == binding.keys => "1-9".to_owned(),
        _ => keys.iter().map(|key| key.label()).collect::<Vec<_>>().join(" "),
    }
}
