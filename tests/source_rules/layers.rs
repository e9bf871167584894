//! Who may use whom: imports go down, never up and never to a neighbour.

use crate::source::{Source, finds, is_word, sources};

/// The layers and how high they stand; those of one height are neighbours.
const LAYERS: [(&str, u8); 7] = [
    ("cli", 5),
    ("log", 4),
    ("segment", 3),
    ("policy", 3),
    ("format", 2),
    ("disk", 2),
    ("model", 1),
];

fn height(layer: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, height)| *height)
}

/// A path in the code that begins at the root of the crate.
struct Reference {
    at: usize,
    /// Layer and what follows, as far as it matters: `disk::real`.
    layer: String,
    below: String,
}

#[test]
fn imports_go_downward_only() {
    let mut faults = Vec::new();
    for source in sources("src") {
        let Some(layer) = source.layer() else { continue };
        let Some(own) = height(layer) else {
            faults.push(format!("{}: {layer} is no layer of LAYERS", source.path));
            continue;
        };
        for reference in references(&source) {
            let fine = reference.layer == layer
                || height(&reference.layer).is_some_and(|other| other < own)
                || (reference.layer == "disk"
                    && reference.below == "real"
                    && source.is_test(reference.at));
            if !fine {
                let place = source.place(reference.at);
                faults.push(format!("{place}: {layer} uses {}", reference.layer));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "Imports go cli -> log -> segment | policy -> format | disk -> model, downward only. \
         Move the code to the layer that it needs, or pass a value down:\n{}",
        faults.join("\n")
    );
}

#[test]
fn main_only_starts_the_command_line() {
    let source = sources("src").into_iter().find(|source| source.path == "src/main.rs").unwrap();
    let layers: Vec<_> = references(&source).into_iter().map(|found| found.layer).collect();
    assert_eq!(layers, ["cli"], "src/main.rs calls cli and nothing else: move the rest there");
}

/// All paths to a layer: from `crate`, from the crate's name, and by `super` to the root.
fn references(source: &Source) -> Vec<Reference> {
    let code = &source.code;
    let mut found = Vec::new();
    for root in ["crate::", "tapelog::"] {
        for at in finds(code, root) {
            add_all(code, at, at + root.len(), &mut found);
        }
    }
    for at in finds(code, "super::") {
        if code[..at].ends_with("super::") {
            continue;
        }
        let supers = code[at..].split("super::").take_while(|text| text.is_empty()).count();
        let supers = supers.max(1);
        let inline = usize::from(source.is_test(at) && !source.is_test_file());
        if supers >= source.depth() + inline {
            add_all(code, at, at + supers * "super::".len(), &mut found);
        }
    }
    found
}

/// Adds what the path or the group `{a, b::c}` at `begin` names.
fn add_all(code: &str, at: usize, begin: usize, found: &mut Vec<Reference>) {
    let rest = code[begin..].trim_start();
    let Some(group) = rest.strip_prefix('{') else {
        return add(at, rest, found);
    };
    let mut depth = 0;
    let mut member = Some(group);
    for (position, c) in group.char_indices() {
        if let Some(text) = member.take() {
            add(at, text.trim_start(), found);
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let text = &group[position + 1..];
                member = Some(text).filter(|text| text.trim_start().starts_with(is_word));
            }
            _ => {}
        }
    }
}

fn add(at: usize, path: &str, found: &mut Vec<Reference>) {
    let name = |text: &str| text.chars().take_while(|c| is_word(*c)).collect::<String>();
    let layer = name(path);
    let below = path[layer.len()..].strip_prefix("::").map(name).unwrap_or_default();
    found.push(Reference { at, layer, below });
}

#[test]
fn the_rule_sees_every_way_to_name_a_layer() {
    let names = |path: &str, code: &str| {
        let source = Source::new(path.to_owned(), code.to_owned());
        let found = references(&source).into_iter();
        found.map(|reference| reference.layer).collect::<Vec<_>>()
    };
    assert_eq!(names("src/log/a.rs", "use crate::disk::Disk;"), ["disk"]);
    assert_eq!(names("src/log/a.rs", "use crate::{disk::{A, B}, model::C,\n};"), ["disk", "model"]);
    assert_eq!(names("src/log/a.rs", "fn f() -> super::super::cli::X {}"), ["cli"]);
    assert_eq!(names("src/log/mod.rs", "use super::cli::X;"), ["cli"]);
    assert_eq!(
        names("src/log/a.rs", "use super::b::X; // crate::cli\nconst S: &str = \"crate::cli\";"),
        [""; 0]
    );
    let tests = "#[cfg(test)]\nmod tests { use super::*; use super::super::b; use super::super::super::cli; }";
    assert_eq!(names("src/log/a.rs", tests), ["cli"]);
}
