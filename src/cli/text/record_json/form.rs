//! A value that stands under one of two names: as text, or as base64 when it is no text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::cli::text::encode::from_base64;
use crate::format::record::push_header;

/// A value that may stand as text or as base64.
#[derive(Default)]
pub struct Forms<'a> {
    pub text: Option<&'a RawValue>,
    pub base64: Option<&'a RawValue>,
}

/// A value in one of its forms.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    raw: &'a RawValue,
    base64: bool,
    name: &'static str,
}

impl<'a> Forms<'a> {
    /// The one that is there, given what both are called.
    pub fn given(self, names: [&'static str; 2]) -> Result<Option<Form<'a>>, String> {
        let (raw, base64) = match (self.text, self.base64) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(format!("has both {} and {}", names[0], names[1])),
            (Some(raw), None) => (raw, false),
            (None, Some(raw)) => (raw, true),
        };
        Ok(Some(Form { raw, base64, name: names[usize::from(base64)] }))
    }
}

impl Form<'_> {
    /// The bytes that a string stands for; none for null.
    pub fn bytes(self) -> Result<Option<Vec<u8>>, String> {
        let name = self.name;
        match self.raw.get().as_bytes() {
            b"null" => Ok(None),
            [b'"', ..] => {
                self.string_bytes().map(Some).map_err(|why| format!("has {why} in {name}"))
            }
            _ => Err(format!("has {} as {name}: {name} must be text or null", kind(self.raw))),
        }
    }

    fn string_bytes(self) -> Result<Vec<u8>, &'static str> {
        let text = self.text().ok_or("an escape of half a character")?;
        match self.base64 {
            false => Ok(text.into_owned().into_bytes()),
            true => from_base64(&text).ok_or("bad base64 (RFC 4648, padded)"),
        }
    }

    /// How the string is written was checked when its end was looked for, so without
    /// escapes it is what stands between the quotes. Half a character, as UTF-16 has
    /// them, is found only now.
    fn text(&self) -> Option<Cow<'_, str>> {
        let written = self.raw.get();
        match written.get(1..written.len() - 1) {
            Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
            _ => serde_json::from_str(written).ok().map(Cow::Owned),
        }
    }

    /// A block of the headers in a flat array; none for null.
    pub fn headers(self) -> Result<Vec<u8>, String> {
        let name = self.name;
        let list: Result<Option<Vec<&RawValue>>, _> = serde_json::from_str(self.raw.get());
        let list = list.map_err(|_| {
            format!(
                "has {} as {name}: {name} must be [name, value, name, value, …]",
                kind(self.raw)
            )
        })?;
        let list = list.unwrap_or_default();
        if list.len() % 2 != 0 {
            return Err(format!("has a name without a value in {name}"));
        }
        let mut block = Vec::new();
        for pair in list.chunks_exact(2) {
            let header = Form { raw: pair[0], ..self }.bytes()?;
            let header = header.ok_or_else(|| format!("has null for a name in {name}"))?;
            push_header(&header, Form { raw: pair[1], ..self }.bytes()?.as_deref(), &mut block);
        }
        Ok(block)
    }
}

/// What a value is, in words.
pub fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes() {
        [b'{', ..] => "an object",
        [b'[', ..] => "an array",
        [b'"', ..] => "text",
        [b'n', ..] => "null",
        [b't', ..] => "true",
        [b'f', ..] => "false",
        _ => "a number",
    }
}
