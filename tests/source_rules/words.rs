//! What may not stand in the code: shortcuts, leftovers, names that say nothing.

use crate::source::{Source, finds, sources};

/// Fails with `advice` if anything is `found`.
fn none(advice: &str, found: &[String]) {
    assert!(found.is_empty(), "{advice}\n{}", found.join("\n"));
}

fn all() -> Vec<Source> {
    ["src", "tests"].into_iter().flat_map(sources).collect()
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    const NAMES: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "manager", "misc"];
    let mut found = Vec::new();
    for source in all() {
        let mut parts = source.path.split(['/', '.']);
        if parts.any(|part| NAMES.contains(&part)) {
            found.push(source.path.clone());
        }
        for name in NAMES {
            let declared = finds(&source.code, &format!("mod {name}")).into_iter();
            found.extend(declared.map(|at| source.place(at)));
        }
    }
    none("Name a module after what it owns:", &found);
}

#[test]
fn nothing_is_imported_wholesale() {
    let mut found = Vec::new();
    for source in all() {
        for at in finds(&source.code, "use ") {
            let import = source.code[at..].split(';').next().unwrap_or_default();
            let of_a_test = import == "use super::*" && source.is_test(at);
            if import.contains('*') && !of_a_test {
                found.push(source.place(at));
            }
        }
    }
    none("Name what is imported; only a test module says `use super::*`:", &found);
}

#[test]
fn nothing_is_left_for_later() {
    let mut found = Vec::new();
    for source in all() {
        for word in ["todo!", "unimplemented!", "dbg!", "#[ignore"] {
            found.extend(finds(&source.code, word).into_iter().map(|at| source.place(at)));
        }
        for word in ["TODO", "FIXME", "XXX"] {
            found.extend(finds(&source.comments, word).into_iter().map(|at| source.place(at)));
        }
    }
    none("Finish it, or take it out; every test runs:", &found);
}

#[test]
fn nothing_panics_for_want_of_a_value() {
    let mut found = Vec::new();
    for source in sources("src") {
        for word in [".unwrap()", ".expect("] {
            let places = finds(&source.code, word).into_iter().filter(|at| !source.is_test(*at));
            found.extend(places.map(|at| source.place(at)));
        }
    }
    none("Return an error, or write code that needs no unwrap:", &found);
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    let mut found = Vec::new();
    for source in all() {
        for at in finds(&source.code, "unsafe") {
            let lines: Vec<_> = source.comments.lines().take(source.line(at)).collect();
            let near = &lines[lines.len().saturating_sub(4)..];
            if !near.iter().any(|line| line.contains("// SAFETY:")) {
                found.push(source.place(at));
            }
        }
    }
    none("Write a `// SAFETY:` comment right above, or do without unsafe:", &found);
}
