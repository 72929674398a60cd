//! Reads the declarations of records and enumerations from the sources: names, types,
//! documentation.
//!
//! Parses the sources line by line and relies on rustfmt's layout.

use std::collections::BTreeMap;
use std::path::Path;

/// Kind of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Struct,
    Enum,
}

/// A field of a record, or a variant of an enumeration.
#[derive(Debug, Default)]
pub struct Field {
    pub name: String,
    /// The type of a field; for a variant, the text after its name.
    pub of: String,
    pub doc: String,
    /// Flattened: its own fields replace it.
    pub is_flat: bool,
}

/// A record or an enumeration.
#[derive(Debug)]
pub struct Item {
    pub kind: Kind,
    pub doc: String,
    pub fields: Vec<Field>,
    /// Spelling of its names in JSON.
    rename: String,
    is_written: bool,
    /// In JSON a variant is what it holds, without its name.
    pub is_untagged: bool,
    file: String,
}

impl Item {
    /// The name of a variant in JSON.
    pub fn renamed(&self, name: &str) -> String {
        let words = || {
            name.char_indices().flat_map(|(at, c)| (at > 0 && c.is_uppercase()).then_some('_').into_iter().chain([c]))
        };
        match self.rename.as_str() {
            "lowercase" => name.to_lowercase(),
            "UPPERCASE" => name.to_uppercase(),
            "snake_case" => words().collect::<String>().to_lowercase(),
            _ => name.to_owned(),
        }
    }
}

/// All public items of the tree, by name.
pub struct Items(BTreeMap<String, Vec<Item>>);

impl Items {
    /// Reads every source file of the engine and the console.
    pub fn read(root: &Path) -> Items {
        let mut items = Items(BTreeMap::new());
        for folder in ["engine", "tui/src"] {
            items.walk(&root.join(folder));
        }
        items
    }

    fn walk(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["tests", "benches", "target", "docs", "fuzz", "stranger"].contains(&name) {
                self.walk(&path);
            } else if name.ends_with(".rs") {
                self.take(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    fn take(&mut self, file: &str, text: &str) {
        if text.contains("blocks! {") {
            self.take_views(file, text);
        }
        let (mut doc, mut attributes) = (String::new(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(said) = line.strip_prefix("/// ") {
                doc = joined(&doc, said);
            } else if line.starts_with("#[") || !attributes.is_empty() && !line.starts_with("pub ") && !line.is_empty()
            {
                attributes.push_str(line);
            } else {
                let declared = [("pub struct ", Kind::Struct), ("pub enum ", Kind::Enum)];
                let found = declared.iter().find_map(|(word, kind)| Some((line.strip_prefix(word)?, *kind)));
                if let Some((name, kind)) = found.and_then(|(rest, kind)| Some((rest.strip_suffix(" {")?, kind))) {
                    let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
                    let rename = between(&attributes, "rename_all = \"", "\"");
                    let rename =
                        rename.or_else(|| between(&attributes, "rename_all(serialize = \"", "\"")).unwrap_or_default();
                    let rename = rename.to_owned();
                    let is_written = attributes.contains("Serialize");
                    let is_untagged = attributes.contains("serde(untagged)");
                    let item = Item {
                        kind,
                        doc: doc.clone(),
                        fields: fields(&body, kind),
                        rename,
                        is_written,
                        is_untagged,
                        file: file.to_owned(),
                    };
                    self.0.entry(name.to_owned()).or_default().push(item);
                }
                doc.clear();
                attributes.clear();
            }
        }
    }

    /// The views that blocks of the board declare: after `ExampleBlock => ExampleView(…) {`, the
    /// fields with an arrow and the fields after `+`.
    fn take_views(&mut self, file: &str, text: &str) {
        let mut doc = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(said) = line.strip_prefix("    /// ") {
                doc = joined(&doc, said);
                continue;
            }
            let view = line.strip_suffix(") {").and_then(|line| line.strip_prefix("    ")?.split_once("Block => "));
            let view = view.or_else(|| line.strip_suffix(") {")?.strip_prefix("    ")?.split_once("Row => "));
            if let Some((_, view)) = view {
                let view = view.rsplit_once("] ").map_or(view, |(_, view)| view);
                let name = view.split('(').next().unwrap();
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "    }").collect();
                let item = Item {
                    kind: Kind::Struct,
                    doc: doc.clone(),
                    fields: shown(&body),
                    rename: String::new(),
                    is_written: true,
                    is_untagged: false,
                    file: file.to_owned(),
                };
                self.0.entry(name.to_owned()).or_default().push(item);
            }
            doc.clear();
        }
    }

    /// The item of that name. Of several, the only one written as JSON, else the one used by a
    /// report or a profile.
    pub fn find(&self, name: &str) -> Option<&Item> {
        let all = self.0.get(name)?;
        let written = || all.iter().filter(|item| item.is_written);
        let of = |folder: &str| written().find(|item| item.file.contains(folder));
        match (all.len(), written().count()) {
            (1, _) => all.first(),
            (_, 1) => written().next(),
            _ => of("engine/report/src/report").or_else(|| of("/profile/")).or_else(|| of("/engine/environment.rs")),
        }
    }

    #[track_caller]
    pub fn get(&self, name: &str) -> &Item {
        self.find(name).unwrap_or_else(|| panic!("no item, or several, of the name {name}"))
    }

    /// The items that a type names, except histograms.
    pub fn named_in(&self, of: &str) -> Vec<String> {
        let words = of.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|word| *word != "Histogram" && self.find(word).is_some()).map(str::to_owned).collect()
    }
}

/// The fields of a body. A field or variant of several lines ends at the indentation of its first
/// line.
fn fields(body: &[&str], kind: Kind) -> Vec<Field> {
    let mut found = Vec::new();
    let (mut doc, mut attributes) = (String::new(), String::new());
    let mut lines = body.iter();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(said) = line.strip_prefix("/// ") {
            doc = joined(&doc, said);
        } else if line.starts_with("#[") {
            attributes.push_str(line);
        } else {
            let mut text = line.to_owned();
            if line.ends_with('{') {
                let inner: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("    }")).copied().collect();
                let inner = self::fields(&inner, Kind::Struct);
                let told: Vec<String> = inner.iter().map(|field| format!("{}: {}", field.name, field.of)).collect();
                let said: Vec<String> = inner.iter().map(|field| format!("`{}`: {}", field.name, field.doc)).collect();
                doc = joined(&doc, &said.join(" "));
                text = format!("{}({})", text.trim_end_matches(" {"), told.join(", "));
            }
            let text = text.trim_end_matches(',');
            let text = text.split_once(" = ").filter(|_| kind == Kind::Enum).map_or(text, |(name, _)| name);
            let split = match kind {
                Kind::Struct => text.trim_start_matches("pub ").split_once(": "),
                Kind::Enum => Some(text.split_at(text.find('(').unwrap_or(text.len()))),
            };
            if let Some((name, of)) = split.filter(|_| !attributes.contains("serde(skip)") && !text.is_empty()) {
                let is_flat = attributes.contains("flatten");
                found.push(Field { name: name.to_owned(), of: of.to_owned(), doc: doc.clone(), is_flat });
            }
            doc.clear();
            attributes.clear();
        }
    }
    found
}

/// The fields of a view that a block declares.
fn shown(body: &[&str]) -> Vec<Field> {
    let (mut found, mut doc, mut is_computed) = (Vec::new(), String::new(), false);
    // Further lines of a value are indented more.
    for line in body.iter().filter_map(|line| line.strip_prefix("    ")).filter(|line| !line.starts_with("     ")) {
        if let Some(said) = line.strip_prefix("    /// ") {
            doc = joined(&doc, said);
            continue;
        }
        is_computed |= line == "} + {";
        let line = line.trim().trim_end_matches(',');
        let arrow = line.split_once(" => ").filter(|_| !is_computed);
        let typed = arrow.map_or(is_computed.then_some(line), |(_, shown)| Some(shown));
        let typed = typed.and_then(|typed| typed.split_once(" =")?.0.split_once(": "));
        let plain = arrow.and_then(|(word, shown)| Some((shown, word.split_once(": ")?.1)));
        let of_word = |word: &str| match word {
            "HistogramBlock" => "Histogram".to_owned(),
            _ if word.starts_with("Text<") => "String".to_owned(),
            _ => word.replace("AtomicU64", "u64"),
        };
        let field = typed.map(|(name, of)| (name, of.to_owned())).or(plain.map(|(name, word)| (name, of_word(word))));
        if let Some((name, of)) = field {
            found.push(Field { name: name.to_owned(), of, doc: doc.clone(), is_flat: false });
        }
        doc.clear();
    }
    found
}

/// Joins lines into one text; replaces links to items by their names.
fn joined(doc: &str, said: &str) -> String {
    let mut text = format!("{doc} {said}").trim().to_owned();
    while let Some((before, link)) = text.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        let name = name.rsplit("::").next().unwrap_or(name);
        text = format!("{before}`{name}`{after}");
    }
    text
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    text.split_once(from)?.1.split_once(to).map(|(inner, _)| inner)
}

#[test]
fn a_declaration_is_read_with_its_documentation() {
    let mut items = Items(BTreeMap::new());
    items.take("shot.rs",
        "/// A source\n/// of shots.\n#[derive(Serialize)]\n#[serde(rename_all = \"snake_case\")]\npub enum Source {\n    /// None.\n    \
         Nowhere = 1,\n    /// Drawn.\n    Sampler {\n        /// The seed.\n        seed: u64,\n    },\n}\n\n#[derive(Serialize)]\n\
         pub struct Shot {\n    /// Its number.\n    pub number: Option<u64>,\n    #[serde(skip)]\n    pub hidden: u8,\n    #[serde(flatten)]\n    \
         pub source: Source,\n}\n",
    );
    let source = items.get("Source");
    assert_eq!((source.kind, source.doc.as_str()), (Kind::Enum, "A source of shots."));
    assert_eq!((source.fields[0].name.as_str(), source.renamed("NowHere").as_str()), ("Nowhere", "now_here"));
    assert_eq!(
        (source.fields[1].of.as_str(), source.fields[1].doc.as_str()),
        ("(seed: u64)", "Drawn. `seed`: The seed.")
    );
    let shot = items.get("Shot");
    assert_eq!(shot.fields.len(), 2);
    assert_eq!((shot.fields[0].of.as_str(), shot.fields[1].is_flat), ("Option<u64>", true));
    assert_eq!(items.named_in("Vec<Source>"), ["Source"]);
}

#[test]
fn the_view_of_a_block_is_read_from_its_declaration() {
    let mut items = Items(BTreeMap::new());
    items.take(
        "layout.rs",
        "blocks! {\n    /// A feed.\n    FeedBlock => #[derive(Default, Eq)] FeedView(block, now) {\n        /// Shots\n        \
         /// taken.\n        taken: AtomicU64 => shots,\n        /// Not shown.\n        hidden:
         /// AtomicU64,\n        /// Why.\n        \
         why: Text<4> => why: Option<String> = Text::read_if_any,\n    } + {\n        /// Age.\n        age_ns: u64 =\n            \
         now.age_ns(&block.hidden),\n    }\n}\n",
    );
    let view = items.get("FeedView");
    let fields: Vec<_> =
        view.fields.iter().map(|field| (field.name.as_str(), field.of.as_str(), field.doc.as_str())).collect();
    let expected = [("shots", "u64", "Shots taken."), ("why", "Option<String>", "Why."), ("age_ns", "u64", "Age.")];
    assert_eq!((view.doc.as_str(), fields), ("A feed.", expected.to_vec()));
}
