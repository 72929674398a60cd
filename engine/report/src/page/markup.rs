//! Writes HTML: every text is escaped here, and only here are tags written.
//!
//! Pure. Bounded by its caller's texts. Never writes a script, a link or an address.
//!
//! # Why control characters are shown as escapes
//! Names of processes, labels and paths come from other users. A character that changes the text
//! direction could make a sentence say something else, also in a browser.

use crate::format::{Syntax, visible};

/// `text` with an escape for each character that HTML, or a reader of it, would not show as such.
pub fn escaped(text: &str) -> String {
    let shown = visible(text, Syntax::Plain);
    let mut out = String::with_capacity(shown.len());
    for found in shown.chars() {
        match found {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Text, on the left.
    Text(&'static str),
    /// Numbers, on the right.
    Number(&'static str),
}

impl Column {
    fn head(self) -> (&'static str, &'static str) {
        match self {
            Column::Text(head) => (head, ""),
            Column::Number(head) => (head, " class=\"number\""),
        }
    }
}

/// A part of the page.
#[derive(Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// The markup as text.
    pub fn into_text(self) -> String {
        self.0
    }

    /// An element that holds one text.
    pub fn element(&mut self, tag: &'static str, class: &'static str, text: &str) {
        self.open(tag, class);
        self.text(text);
        self.close(tag);
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.element("p", "", text);
    }

    /// A paragraph that explains what is above or below it.
    pub fn caption(&mut self, text: &str) {
        self.element("p", "caption", text);
    }

    /// A section with its heading, until [`Markup::close`].
    pub fn section(&mut self, heading: &str) {
        self.open("section", "");
        self.element("h2", "", heading);
    }

    /// The start of an element.
    pub fn open(&mut self, tag: &'static str, class: &'static str) {
        self.0.push('<');
        self.0.push_str(tag);
        if !class.is_empty() {
            self.0.push_str(" class=\"");
            self.0.push_str(class);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// The end of an element.
    pub fn close(&mut self, tag: &'static str) {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(">\n");
    }

    /// Text within an element.
    pub fn text(&mut self, text: &str) {
        self.0.push_str(&escaped(text));
    }

    /// Names and what they are; rows without a value are left out.
    pub fn facts(&mut self, rows: &[(&str, String)]) {
        self.open("dl", "");
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            self.element("dt", "", name);
            self.element("dd", "", value);
        }
        self.close("dl");
    }

    /// A list of sentences; without any, nothing.
    pub fn list(&mut self, sentences: &[String]) {
        if sentences.is_empty() {
            return;
        }
        self.open("ul", "");
        sentences.iter().for_each(|sentence| self.element("li", "", sentence));
        self.close("ul");
    }

    /// A table; without rows, nothing.
    pub fn table(&mut self, columns: &[Column], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        self.0.push_str("<div class=\"wide\"><table><thead><tr>");
        for (head, class) in columns.iter().map(|column| column.head()) {
            self.0.push_str(&format!("<th{class}>{}</th>", escaped(head)));
        }
        self.0.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for (cell, column) in row.iter().zip(columns) {
                self.0.push_str(&format!("<td{}>{}</td>", column.head().1, escaped(cell)));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</tbody></table></div>\n");
    }

    /// Markup made elsewhere in this folder, whose texts are escaped already.
    pub fn made(&mut self, markup: &str) {
        self.0.push_str(markup);
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Markup, escaped};

    const HOSTILE: &str = "<script>alert('1 & \"2\"')</script>\u{1b}[2J\u{202e}fdp";

    #[test]
    fn text_of_others_is_shown_as_it_is_and_does_nothing() {
        let shown = escaped(HOSTILE);
        let expected = r"&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;\u{1b}[2J\u{202e}fdp";
        assert_eq!(shown, expected);
        assert_eq!(escaped("µs ─ 見る"), "µs ─ 見る");
    }

    #[test]
    fn no_part_of_the_page_takes_markup_from_a_text() {
        let mut markup = Markup::default();
        markup.section(HOSTILE);
        markup.paragraph(HOSTILE);
        markup.facts(&[(HOSTILE, HOSTILE.to_owned())]);
        markup.list(&[HOSTILE.to_owned()]);
        markup.table(&[Column::Text("a"), Column::Number("b")], &[vec![HOSTILE.to_owned(), HOSTILE.to_owned()]]);
        let text = markup.into_text();
        assert_eq!(text.matches("&lt;script&gt;").count(), 7, "{text}");
        assert!(!text.contains("<script") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}
