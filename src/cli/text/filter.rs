//! Which records are wanted.

use crate::format::record::RecordView;

/// Conditions on records.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Any of these keys; all, if there are none.
    pub keys: Vec<Vec<u8>>,
}

impl Filter {
    /// Whether every record passes.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether this record passes.
    pub fn passes(&self, record: &RecordView<'_>) -> bool {
        self.is_empty() || self.keys.iter().any(|key| record.content.key == Some(key))
    }
}
