//! A user's own keys, in RON: `{ "views": { "freeze": ["F", "F5"] } }`.
//!
//! Pure: text in, rows of the table with their keys out. Bounded by the table: what it does not name is refused. What a
//! file does not mention keeps its keys.
//!
//! # Why a name has all its keys in the file
//!
//! A key that is added to others leaves the one that slipped under the finger where it was. So what is bound anew has the
//! keys of the file and no others.

use super::{Scope, TABLE, name};
use crate::msg::Key;
use pinwheel_engine::quote::cut;
use std::collections::BTreeMap;

/// Most bytes of a file of keys.
pub const BYTES_MAX: usize = 64 << 10;
/// Most keys of one action.
const KEYS_MAX: usize = 9;

/// Why a file of keys is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// No RON, or not of that shape.
    #[error("found {0}, expected a map like {{ \"views\": {{ \"freeze\": [\"F\"] }} }}; mend or remove the file")]
    Shape(String),
    /// No such scope.
    #[error("found scope '{found}', expected one of {expected}; pinwheel man lists the actions of each")]
    Scope {
        /// What the file says.
        found: String,
        /// All there are.
        expected: String,
    },
    /// No such action there.
    #[error("found action '{found}' in {scope}, expected one of {expected}; mend its name")]
    Action {
        /// What the file says.
        found: String,
        /// Where.
        scope: &'static str,
        /// All there are.
        expected: String,
    },
    /// No such key.
    #[error(
        "found key '{found}' for {action}, expected a letter, ctrl-c, F5, space, tab, enter, esc, pgup and the like; mend it"
    )]
    Key {
        /// What the file says.
        found: String,
        /// For what.
        action: String,
    },
    /// None, or more than a hand has use for.
    #[error("found {found} keys for {action}, expected 1 to 9; what nobody can press cannot be done")]
    Count {
        /// How many.
        found: usize,
        /// For what.
        action: String,
    },
    /// One key, two meanings.
    #[error(
        "found key '{key}' in {scope} for both {first} and {second}, expected it once; bind one of them to another key"
    )]
    Twice {
        /// The key.
        key: String,
        /// Where.
        scope: &'static str,
        /// One meaning.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

/// The rows of [`TABLE`] that `text` binds anew, with their keys.
///
/// # Errors
/// The first thing that is wrong.
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
        name::key(text).ok_or_else(|| KeysError::Key { found: cut(text).into_owned(), action: action.to_owned() })
    };
    keys.iter().map(key).collect()
}
