//! A profile with all its fields: the base's text with the profile's values.
//!
//! Pure and cold; bounded by the base's text and by the profile. Comments, units and the order of
//! the fields are therefore only in `base.ron`.

use super::layer::BASE;
use super::locate::{self, Located};
use super::schema::Profile;

impl Profile {
    /// Its text with all fields, each with the comment of the base; itself a profile.
    ///
    /// # Errors
    /// If it has values that no valid profile has.
    pub fn to_full_text(&self) -> Result<String, ron::Error> {
        let (base, own) = (one_line(&Profile::base())?, one_line(self)?);
        let (of_base, of_own) = (locate::fields(&base), locate::fields(&own));
        let value = |text: &'_ str, fields: &[Located], path: &str| -> Option<String> {
            let field = fields.iter().find(|field| field.path == path)?;
            Some(text[field.bytes.clone()].to_owned())
        };
        let (mut full, mut at) = (String::new(), 0);
        for Located { path, bytes, .. } in locate::fields(BASE) {
            // A replaced value is not searched for fields; a record is replaced field by field.
            if bytes.start < at || BASE[bytes.clone()].starts_with('(') {
                continue;
            }
            full.push_str(&BASE[at..bytes.start]);
            match value(&own, &of_own, &path) {
                Some(own) if value(&base, &of_base, &path).as_ref() != Some(&own) => full.push_str(&own),
                _ => full.push_str(&BASE[bytes.clone()]),
            }
            at = bytes.end;
        }
        full.push_str(&BASE[at..]);
        Ok(full)
    }
}

/// Its text on one line.
pub(super) fn one_line(profile: &Profile) -> Result<String, ron::Error> {
    let config = ron::ser::PrettyConfig::new().compact_structs(true).compact_arrays(true).compact_maps(true);
    ron::ser::to_string_pretty(profile, config).map(|text| bare(&text))
}

/// `text`, which RON has written, with `None` and `Some` of every kind as a profile has them: RON
/// writes `r#None` for a variant of that name.
pub(super) fn bare(text: &str) -> String {
    let (mut bare, mut rest, mut is_string) = (String::with_capacity(text.len()), text, false);
    while let Some(first) = rest.chars().next() {
        if let (false, Some(after)) = (is_string, rest.strip_prefix("r#")) {
            rest = after;
            continue;
        }
        is_string ^= first == '"';
        // In a string a backslash belongs to the character after it.
        let taken = if is_string && first == '\\' { 2 } else { 1 };
        let end = rest.char_indices().nth(taken).map_or(rest.len(), |(end, _)| end);
        bare.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::super::layer::BASE;
    use super::locate;

    #[test]
    fn every_field_of_the_base_says_what_it_means() {
        let lines: Vec<&str> = BASE.lines().collect();
        let mut end = 0;
        for field in locate::fields(BASE) {
            let is_record = BASE[field.bytes.clone()].starts_with("(\n");
            if field.bytes.start < end || is_record {
                continue;
            }
            end = field.bytes.end;
            let line = field.position.line as usize - 1;
            let has_comment = lines[line].contains("//") || lines[line - 1].trim_start().starts_with("//");
            assert!(has_comment, "{}", field.path);
        }
    }
}
