//! The project's Rust files as the rules look at them: code without its comments
//! and texts, comments without the code, and which lines are tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One file.
pub struct Source {
    /// Its path below the project's folder.
    pub path: String,
    /// As it is.
    pub text: String,
    /// Its code; comments and the insides of texts are blanks, byte for byte.
    pub code: String,
    /// Its comments; all else is blanks, byte for byte.
    pub comments: String,
    /// Whether the whole file is compiled for tests only.
    for_tests: bool,
    /// The byte ranges that are.
    tests: Vec<std::ops::Range<usize>>,
}

/// All `.rs` files below `folder`, by name, but for those of another crate.
pub fn sources(folder: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(&root().join(folder), &mut paths);
    paths.sort();
    assert!(!paths.is_empty(), "no .rs file below {folder}: these rules look at nothing");
    let mut sources: Vec<_> = paths.iter().map(|path| Source::read(path)).collect();
    mark_test_files(&mut sources);
    sources
}

/// Takes a file whose module is declared under `#[cfg(test)]` for tests, as a whole.
fn mark_test_files(sources: &mut [Source]) {
    let declared: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in sources.iter_mut().filter(|source| declared.contains(&source.module())) {
        source.for_tests = true;
        source.tests = std::iter::once(0..source.text.len()).collect();
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.join("Cargo.toml").exists() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

impl Source {
    fn read(path: &Path) -> Source {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        Source::new(name, fs::read_to_string(path).unwrap())
    }

    pub fn new(path: String, text: String) -> Source {
        let (code, comments) = part(&text);
        let for_tests = is_test_file(&path);
        let tests = match for_tests {
            true => std::iter::once(0..text.len()).collect(),
            false => test_items(&code),
        };
        Source { path, text, code, comments, for_tests, tests }
    }

    /// The path of the module: `src/log/read` for `src/log/read.rs`, `src/log` for its mod.rs.
    fn module(&self) -> String {
        let path = self.path.trim_end_matches(".rs");
        let root = ["/mod", "/lib", "/main"].iter().find_map(|name| path.strip_suffix(name));
        root.unwrap_or(path).to_owned()
    }

    /// The modules that the file declares by `#[cfg(test)] mod name;`.
    fn test_modules(&self) -> Vec<String> {
        let items = self.tests.iter().map(|range| &self.code[range.clone()]);
        let name = |item: &str| {
            let declared = item.trim_start_matches("#[cfg(test)]").trim().strip_suffix(';')?;
            let name = declared.split_once("mod ")?.1;
            Some(format!("{}/{name}", self.module()))
        };
        items.filter_map(name).collect()
    }

    /// The layer that the file belongs to: the first folder below src.
    pub fn layer(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        Some(below.split_once('/')?.0)
    }

    /// How deep the file's module lies: 1 for a layer's mod.rs.
    pub fn depth(&self) -> usize {
        let path = self.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        path.matches('/').count()
    }

    /// Whether the byte at `at` is compiled for tests only.
    pub fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Whether the whole file is.
    pub fn is_test_file(&self) -> bool {
        self.for_tests
    }

    /// Where the byte at `at` is, for messages.
    pub fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path, self.line(at))
    }

    /// The line number of the byte at `at`.
    pub fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }
}

fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Where `word` stands in `text` with no letter, digit or underline right before it,
/// nor after it if it ends with one itself.
pub fn finds(text: &str, word: &str) -> Vec<usize> {
    let ends_open = word.ends_with(is_word);
    let alone = |&(at, _): &(usize, &str)| {
        let before = word.starts_with(is_word) && text[..at].ends_with(is_word);
        let after = ends_open && text[at + word.len()..].starts_with(is_word);
        !before && !after
    };
    text.match_indices(word).filter(alone).map(|(at, _)| at).collect()
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Parts a file into code and comments of the same length.
fn part(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::new(), String::new());
    let mut rest = text;
    while !rest.is_empty() {
        let piece = next_piece(rest, code.chars().next_back());
        let (taken, left) = rest.split_at(piece.len);
        let blank = blanked(taken);
        code.push_str(if piece.kind == Kind::Code { taken } else { &blank });
        comments.push_str(if piece.kind == Kind::Comment { taken } else { &blank });
        rest = left;
    }
    (code, comments)
}

fn blanked(text: &str) -> String {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank).collect()
}

struct Piece {
    kind: Kind,
    len: usize,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Text,
}

/// The next token, coarsely: a comment, a text, a character, or one character of code.
fn next_piece(rest: &str, before: Option<char>) -> Piece {
    let starts_word = !before.is_some_and(is_word);
    let piece = |kind, len| Piece { kind, len };
    if rest.starts_with("//") {
        return piece(Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return piece(Kind::Comment, block_comment(rest));
    }
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
    if let (true, Some(raw)) = (starts_word, raw) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = rest.len() - raw.len() + hashes + 1;
            let len = rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len());
            return piece(Kind::Text, len);
        }
    }
    if rest.starts_with('"') {
        return piece(Kind::Text, quoted(rest, '"'));
    }
    // A quote begins a character, unless it is a lifetime.
    let mut after = rest.strip_prefix('\'').unwrap_or_default().chars();
    if let (Some(first), second) = (after.next(), after.next())
        && (first == '\\' || second == Some('\''))
    {
        return piece(Kind::Text, quoted(rest, '\''));
    }
    piece(Kind::Code, rest.chars().next().map_or(0, char::len_utf8))
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if tail.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// The items marked `#[cfg(test)]`.
fn test_items(code: &str) -> Vec<std::ops::Range<usize>> {
    let begins = code.match_indices("#[cfg(test)]").map(|(at, _)| at);
    begins.map(|begin| begin..begin + item_len(&code[begin..])).collect()
}

/// To the item's closing brace, or its semicolon if that comes first.
fn item_len(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn a_file_declared_for_tests_is_test_code() {
    let file = |path: &str, text: &str| Source::new(path.to_owned(), text.to_owned());
    let mut sources = vec![
        file("src/log/mod.rs", "#[cfg(test)]\npub(crate) mod fixture;\nmod read;\n"),
        file("src/log/fixture.rs", "fn f() {}\n"),
        file("src/log/read.rs", "fn f() {}\n"),
    ];
    mark_test_files(&mut sources);
    let marked: Vec<_> = sources.iter().map(Source::is_test_file).collect();
    assert_eq!(marked, [false, true, false]);
}
