//! The key table as text, for the book and for the man page.
//!
//! Pure. Always the built-in table: a page cannot know the user's keys.

use super::{Scope, TABLE, name};
use crate::keymap::key::Key;

/// A row of the page: keys, name, effect.
pub type Line = (String, &'static str, &'static str);

pub fn lines(scope: Scope) -> impl Iterator<Item = Line> {
    TABLE.iter().filter(move |binding| binding.scope == scope).map(|binding| {
        let keys = match binding.keys {
            [Key::Char('1'), .., Key::Char('9')] => "1-9".to_owned(),
            keys => keys.iter().map(|key| key.spelled()).collect::<Vec<_>>().join(" "),
        };
        (keys, name::action(binding.action), binding.help)
    })
}
