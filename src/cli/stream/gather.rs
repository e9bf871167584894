//! Records on their way into one batch, where they are more than lines of the input.

use crate::format::batch::Layout;
use crate::format::body;
use crate::format::record::{Content, Headers};
use crate::model::Timestamp;

/// Records gathered for one batch; their bytes are copied.
#[derive(Debug, Default)]
pub struct Gathered {
    bytes: Vec<u8>,
    records: Vec<Parts>,
    body: Vec<u8>,
}

/// Where a record's parts end in the bytes: each begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Parts {
    key: Option<usize>,
    value: Option<usize>,
    headers: usize,
    own_time: Option<Timestamp>,
}

impl Gathered {
    /// Adds a record.
    pub fn push(&mut self, record: &Content<'_>) {
        let mut add = |bytes: Option<&[u8]>| {
            self.bytes.extend_from_slice(bytes.unwrap_or_default());
            bytes.map(|_| self.bytes.len())
        };
        let (key, value) = (add(record.key), add(record.value));
        self.bytes.extend_from_slice(record.headers.block());
        let headers = self.bytes.len();
        self.records.push(Parts { key, value, headers, own_time: record.own_time });
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many bytes they take, about.
    pub fn size(&self) -> usize {
        // A newline and a length for each.
        self.bytes.len() + 2 * self.records.len()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// The records.
    pub fn contents(&self) -> Vec<Content<'_>> {
        let mut begin = 0;
        let mut take = |end: usize| {
            let part = &self.bytes[begin..end];
            begin = end;
            part
        };
        let content = |parts: &Parts| Content {
            key: parts.key.map(&mut take),
            value: parts.value.map(&mut take),
            headers: Headers::in_block(take(parts.headers)),
            own_time: parts.own_time,
        };
        self.records.iter().map(content).collect()
    }

    /// The records as the body of a batch, in the layout that they need.
    pub fn body(&mut self) -> (Layout, &[u8]) {
        let mut body = std::mem::take(&mut self.body);
        let layout = body::encode(&self.contents(), &mut body);
        self.body = body;
        (layout, &self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_given() {
        let plain = Content::of_value(b"value");
        let given = [
            plain,
            Content { key: Some(b""), ..plain },
            Content { value: None, own_time: Some(Timestamp::from_millis(5)), ..plain },
            Content { key: Some(b"key"), value: Some(b""), ..plain },
        ];
        let mut gathered = Gathered::default();
        given.iter().for_each(|record| gathered.push(record));
        assert_eq!(gathered.contents(), given);
        assert_eq!(gathered.body().0, Layout::Columns);
    }
}
