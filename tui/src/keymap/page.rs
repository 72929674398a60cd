//! The table written out: for the book and for the man page.
//!
//! Pure. Always the table as it is built in: a page is read before the program is started.

use super::{Scope, TABLE, name};
use crate::msg::Key;

/// A row of the page: keys, name, what it does.
pub type Line = (String, &'static str, &'static str);

/// The rows of `scope`.
pub fn lines(scope: Scope) -> impl Iterator<Item = Line> {
    TABLE.iter().filter(move |binding| binding.scope == scope).map(|binding| {
        let keys = match binding.keys {
            [Key::Char('1'), .., Key::Char('9')] => "1-9".to_owned(),
            keys => keys.iter().map(|key| name::spelled(*key)).collect::<Vec<_>>().join(" "),
        };
        (keys, name::action(binding.action), binding.help)
    })
}
