//! Records and enumerations as the sources declare them: names, types, documentation.
//!
//! Reads the text of the sources, line by line, as rustfmt writes them. Bounded by the tree.

use std::collections::BTreeMap;
use std::path::Path;

/// What an item is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Struct,
    Enum,
}

/// A field of a record, or a variant of an enumeration.
#[derive(Debug, Default)]
pub struct Field {
    pub name: String,
    /// The type; of a variant what follows its name.
    pub of: String,
    pub doc: String,
    /// Its own fields stand in the place of it.
    pub is_flat: bool,
}

/// A record or an enumeration.
#[derive(Debug)]
pub struct Item {
    pub kind: Kind,
    pub doc: String,
    pub fields: Vec<Field>,
    /// How its names are spelled in JSON.
    rename: String,
    is_written: bool,
    file: String,
}

impl Item {
    /// The name of a variant as JSON has it.
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

/// All items of the tree that are public, by name.
pub struct Items(BTreeMap<String, Vec<Item>>);

impl Items {
    /// Reads every source of the engine and the console.
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
            if path.is_dir() && !["tests", "benches", "target", "docs", "fuzz"].contains(&name) {
                self.walk(&path);
            } else if name.ends_with(".rs") {
                self.take(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    fn take(&mut self, file: &str, text: &str) {
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
                    let item = Item {
                        kind,
                        doc: doc.clone(),
                        fields: fields(&body, kind),
                        rename,
                        is_written,
                        file: file.to_owned(),
                    };
                    self.0.entry(name.to_owned()).or_default().push(item);
                }
                doc.clear();
                attributes.clear();
            }
        }
    }

    /// The item of that name: of several the only one that is written as JSON, else the one that a report or a profile has.
    pub fn find(&self, name: &str) -> Option<&Item> {
        let all = self.0.get(name)?;
        let written = || all.iter().filter(|item| item.is_written);
        let of = |folder: &str| written().find(|item| item.file.contains(folder));
        match (all.len(), written().count()) {
            (1, _) => all.first(),
            (_, 1) => written().next(),
            _ => of("tui/src/report").or_else(|| of("/profile/")).or_else(|| of("/engine/environment.rs")),
        }
    }

    #[track_caller]
    pub fn get(&self, name: &str) -> &Item {
        self.find(name).unwrap_or_else(|| panic!("no item, or several, of the name {name}"))
    }

    /// The items that a type names, histograms excepted.
    pub fn named_in(&self, of: &str) -> Vec<String> {
        let words = of.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|word| *word != "Histogram" && self.find(word).is_some()).map(str::to_owned).collect()
    }
}

/// The fields of a body; a field or a variant that takes several lines ends where the indentation is that of its start.
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

/// Sentences of several lines as one text; links to items become their names.
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
