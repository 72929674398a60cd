//! Generates a JSON Schema of the report, and checks values against it.
//!
//! Pure. Supports only the part of JSON Schema that it generates.

use super::in_json;
use super::source::{Items, Kind};
use serde_json::{Map, Value, json};

/// The schema of the first of `names`; the others become its definitions.
pub fn of(items: &Items, names: &[String]) -> Value {
    let mut definitions = Map::new();
    for name in names {
        definitions.insert(name.clone(), item(items, name));
    }
    let whole = json!({"type": "integer", "minimum": 0});
    let quantiles = ["p50", "p90", "p99", "p999", "max", "mean", "count"];
    let properties: Map<String, Value> = quantiles.iter().map(|name| ((*name).to_owned(), whole.clone())).collect();
    definitions.insert(
        "Histogram".to_owned(),
        json!({"type": "object", "description": "A distribution of times, nanoseconds.", "properties": properties, "required": quantiles}),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pinwheel run --json",
        "$ref": format!("#/$defs/{}", names[0]),
        "$defs": definitions,
    })
}

fn item(items: &Items, name: &str) -> Value {
    let item = items.get(name);
    if item.kind == Kind::Enum {
        let is_plain = item.fields.iter().all(|field| field.of.is_empty());
        let names: Vec<String> = item.fields.iter().map(|field| item.renamed(&field.name)).collect();
        return if item.is_untagged {
            let held = |of: &str| kind(items, of.trim_matches(['(', ')']));
            let choices: Vec<Value> = item.fields.iter().map(|field| held(&field.of)).collect();
            json!({"description": item.doc, "anyOf": choices})
        } else if is_plain {
            json!({"description": item.doc, "enum": names})
        } else {
            json!({"description": item.doc})
        };
    }
    let (mut properties, mut required, mut flat) = (Map::new(), Vec::new(), Vec::new());
    for field in &item.fields {
        if field.is_flat {
            flat.push(kind(items, &field.of));
            continue;
        }
        let mut of = kind(items, &field.of);
        if !field.doc.is_empty() {
            of["description"] = Value::String(in_json(&field.doc));
        }
        properties.insert(field.name.clone(), of);
        required.push(field.name.clone());
    }
    let mut schema = json!({"type": "object", "description": item.doc, "properties": properties, "required": required});
    if !flat.is_empty() {
        schema["allOf"] = Value::Array(flat);
    }
    schema
}

fn kind(items: &Items, of: &str) -> Value {
    let inner = |prefix: &str| of.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    match of {
        "Histogram" => json!({"$ref": "#/$defs/Histogram"}),
        "String" | "&'static str" => json!({"type": "string"}),
        "f64" => json!({"type": "number"}),
        "bool" => json!({"type": "boolean"}),
        "Value" | "serde_json::Value" => json!({}),
        "u8" | "u16" | "u32" | "u64" | "usize" => json!({"type": "integer", "minimum": 0}),
        "i32" | "i64" => json!({"type": "integer"}),
        _ if of.starts_with("BTreeMap<") || of.starts_with("Vec<(&'static str,") => json!({"type": "object"}),
        _ if of.starts_with(['[', '(']) => json!({"type": "array"}),
        _ => match (inner("Option<"), inner("Vec<")) {
            (Some(inner), _) => json!({"anyOf": [kind(items, inner), {"type": "null"}]}),
            (_, Some(inner)) => json!({"type": "array", "items": kind(items, inner)}),
            _ if items.find(of).is_some() => json!({"$ref": format!("#/$defs/{of}")}),
            _ => json!({}),
        },
    }
}

/// Lists where `value` violates `schema`, one line each.
pub fn faults(value: &Value, schema: &Value, whole: &Value, path: &str) -> Vec<String> {
    if let Some(named) = schema["$ref"].as_str() {
        let definition = &whole["$defs"][named.rsplit('/').next().unwrap()];
        return faults(value, definition, whole, path);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let tried: Vec<_> = choices.iter().map(|choice| faults(value, choice, whole, path)).collect();
        return if tried.iter().any(Vec::is_empty) { Vec::new() } else { tried.concat() };
    }
    let is_right = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => schema["enum"].as_array().is_none_or(|choices| choices.contains(value)),
    };
    if !is_right {
        return vec![format!("{path}: found {value}, expected {schema}")];
    }
    let mut found = Vec::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{path}.{name} is missing"));
        }
    }
    if let (Some(object), Some(known), None) =
        (value.as_object(), schema["properties"].as_object(), schema.get("allOf"))
    {
        let unknown = object.keys().filter(|name| !known.contains_key(*name));
        found.extend(unknown.map(|name| format!("{path}.{name} is not in the schema")));
    }
    // What one part does not name belongs to another one.
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let parts = parts.flat_map(|part| faults(value, part, whole, path));
    found.extend(parts.filter(|said| !said.ends_with("is not in the schema")));
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(inner) = value.get(name) {
            found.extend(faults(inner, of, whole, &format!("{path}.{name}")));
        }
    }
    for (at, inner) in value.as_array().into_iter().flatten().enumerate() {
        if schema.get("items").is_some() {
            found.extend(faults(inner, &schema["items"], whole, &format!("{path}[{at}]")));
        }
    }
    found
}
