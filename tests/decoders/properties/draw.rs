//! Values made of an input's bytes, so that an input can also say what to encode.

/// Takes values off the front of an input. Where that has ended, they are zero.
pub struct Draw<'a> {
    rest: &'a [u8],
}

impl<'a> Draw<'a> {
    pub fn new(input: &'a [u8]) -> Draw<'a> {
        Draw { rest: input }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that was not drawn yet.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes, or as many as there are.
    pub fn up_to(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.up_to(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    /// One of `choices`.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.u8()) % choices.len()]
    }

    /// Some bytes, with their number before them.
    pub fn bytes(&mut self) -> &'a [u8] {
        let count = self.u8();
        self.up_to(usize::from(count))
    }

    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.u8() % 2 == 1).then(|| draw(self))
    }
}
