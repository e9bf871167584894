//! The files themselves: how long they are, how they begin, who runs them.

use std::fs;

use crate::source::{finds, root, sources};

/// A file that grows beyond this is split by subject.
const LONGEST: usize = 450;

#[test]
fn no_file_is_long() {
    let lines = |text: &str| text.lines().count();
    let long: Vec<_> = sources("src")
        .into_iter()
        .filter(|source| lines(&source.text) > LONGEST)
        .map(|source| format!("{}: {} lines", source.path, lines(&source.text)))
        .collect();
    assert!(
        long.is_empty(),
        "Split by subject what has over {LONGEST} lines:\n{}",
        long.join("\n")
    );
}

#[test]
fn every_file_opens_with_what_it_owns() {
    let silent: Vec<_> = sources("src")
        .into_iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert!(
        silent.is_empty(),
        "Begin with a few //! sentences on what the module owns:\n{}",
        silent.join("\n")
    );
}

#[test]
fn every_file_is_compiled() {
    let all: Vec<_> = ["src", "tests"].into_iter().flat_map(sources).collect();
    let declares = |parent: &str, name: &str| {
        let parent = all.iter().find(|source| source.path == parent);
        parent.is_some_and(|parent| !finds(&parent.code, &format!("mod {name};")).is_empty())
    };
    let is_target = |folder: &str, name: &str| match folder {
        "src" => ["main", "lib"].contains(&name),
        "tests" => true,
        _ => folder.starts_with("tests/") && !folder[6..].contains('/') && name == "main",
    };
    let mut lost = Vec::new();
    for source in &all {
        let module = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
        let (folder, name) = module.rsplit_once('/').unwrap();
        let parents = ["/mod.rs", "/main.rs", "/lib.rs", ".rs"];
        let is_module = parents.iter().any(|parent| declares(&format!("{folder}{parent}"), name));
        // A folder beside tests that several of them take in.
        let is_shared = folder == "tests"
            && all.iter().any(|other| !finds(&other.code, &format!("mod {name};")).is_empty());
        let is_folder = source.path.ends_with("/mod.rs") && folder == "tests";
        if !is_module && !is_shared && (is_folder || !is_target(folder, name)) {
            lost.push(source.path.clone());
        }
    }
    assert!(
        lost.is_empty(),
        "No `mod` line takes these in, so nobody runs them:\n{}",
        lost.join("\n")
    );
}

#[test]
fn the_toolchain_is_stated_once() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let stated = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = stated.expect("Cargo.toml states rust-version").trim_matches('"');
    let mut found = Vec::new();
    for name in ["rust-toolchain", "rust-toolchain.toml"] {
        if root().join(name).exists() {
            found.push(name.to_owned());
        }
    }
    let texts = ["README.md", "CHANGELOG.md", ".ci/run", "clippy.toml", "rustfmt.toml"];
    for name in texts {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let lines = text.lines().zip(1..);
        let stating =
            lines.filter(|(line, _)| !finds(line, version).is_empty() || line.contains("msrv"));
        found.extend(stating.map(|(_, number)| format!("{name}:{number}")));
    }
    assert!(
        found.is_empty(),
        "rust-version in Cargo.toml is the only place that states the toolchain ({version}):\n{}",
        found.join("\n")
    );
}
