//! A user's own keys, in RON: `{ "views": { "freeze": ["F", "F5"] } }`.
//!
//! Pure: text in, rows of the table with their keys out. Bounded by the table: unknown names are
//! refused. Actions that a file does not mention keep their keys.
//!
//! # Why a file lists all keys of an action
//!
//! A user rebinds an action to make a key safe that is pressed by mistake. Added keys would leave
//! that key bound. So an action in the file has the keys of the file and no others.

use super::{Scope, TABLE, name};
use crate::keymap::key::Key;
use pinwheel_engine::quote::cut;
use std::collections::BTreeMap;

/// Largest key file, bytes.
pub const BYTES_MAX: usize = 64 << 10;
/// Most keys of one action.
const KEYS_MAX: usize = 9;

/// Why a key file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    #[error("invalid key file: {0}; it needs a map like {{ \"views\": {{ \"freeze\": [\"F\"] }} }}")]
    Shape(String),
    #[error("unknown scope '{found}'; use one of {expected}; pinwheel man lists the actions of each")]
    Scope { found: String, expected: String },
    #[error("unknown action '{found}' in {scope}; use one of {expected}")]
    Action { found: String, scope: &'static str, expected: String },
    #[error("unknown key '{found}' for {action}; use a letter, ctrl-c, F5, space, tab, enter, esc, pgup and the like")]
    Key { found: String, action: String },
    #[error("{action} has {found} keys; give it 1 to 9")]
    Count { found: usize, action: String },
    #[error("key '{key}' in {scope} is bound to both {first} and {second}; bind one of them to another key")]
    Twice { key: String, scope: &'static str, first: &'static str, second: &'static str },
}

/// The rows of [`TABLE`] that `text` rebinds, by index, with their keys.
///
/// # Errors
/// The first error in the file.
pub fn read(text: &str) -> Result<Vec<(usize, Vec<Key>)>, KeysError> {
    if text.len() > BYTES_MAX {
        return Err(KeysError::Shape(format!("{} bytes", text.len())));
    }
    let scopes: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        ron::from_str(text).map_err(|error| KeysError::Shape(cut(&error.to_string()).into_owned()))?;
    let mut rows = Vec::new();
    for (scope, actions) in scopes {
        let known = Scope::ALL.into_iter().find(|known| known.name() == scope);
        let known = known.ok_or_else(|| KeysError::Scope {
            found: cut(&scope).into_owned(),
            expected: Scope::ALL.map(Scope::name).join(", "),
        })?;
        for (action, keys) in actions {
            rows.push((row(known, &action)?, self::keys(&action, &keys)?));
        }
    }
    Ok(rows)
}

fn row(scope: Scope, action: &str) -> Result<usize, KeysError> {
    let is_here = |row: &usize| TABLE[*row].scope == scope;
    let here = || (0..TABLE.len()).filter(is_here);
    let found = here().find(|row| name::action(TABLE[*row].action) == action);
    found.ok_or_else(|| KeysError::Action {
        found: cut(action).into_owned(),
        scope: scope.name(),
        expected: here().map(|row| name::action(TABLE[row].action)).collect::<Vec<_>>().join(", "),
    })
}

fn keys(action: &str, keys: &[String]) -> Result<Vec<Key>, KeysError> {
    if keys.is_empty() || keys.len() > KEYS_MAX {
        return Err(KeysError::Count { found: keys.len(), action: action.to_owned() });
    }
    let key = |text: &String| {
        Key::parse(text).ok_or_else(|| KeysError::Key { found: cut(text).into_owned(), action: action.to_owned() })
    };
    keys.iter().map(key).collect()
}
