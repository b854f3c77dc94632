//! Memory in segments.
//!
//! A binding reaches from its offset to the end of its buffer and must not be longer than the device allows, so the
//! memory of each kind is a list of buffers no longer than that. Plans know kinds and byte offsets; here each place
//! becomes a segment and an offset in it. No tensor crosses a segment, and of an array with one row an iteration no
//! row does. Offsets are multiples of [`BINDING_ALIGNMENT`].

use crate::device::gpu::BINDING_ALIGNMENT;
use crate::device::{Binding, Buffer, Device};
use crate::{Error, Result};
use std::fmt;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Parameters and buffers of a model.
    Parameters,
    /// Gradients.
    Gradients,
    /// Moments of an optimizer.
    Moments,
    /// States that live from call to call.
    States,
    /// Values within a call.
    Arena,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::Moments => "moments",
            Self::States => "states",
            Self::Arena => "values",
        })
    }
}

/// A place in segmented memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Which segment.
    pub segment: usize,
    /// Bytes from its start.
    pub offset: u64,
}

/// Where the rows of an array lie: every segment but the first holds as many as fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    stride: u64,
    /// First row and place of each stretch of rows that lie in one segment, ascending.
    runs: Vec<(u64, Spot)>,
    count: u64,
}

impl Rows {
    /// The place of a byte of the array, counted as if all rows lay one after the other.
    pub fn at(&self, offset: u64) -> Option<Spot> {
        let (row, inside) = (offset / self.stride, offset % self.stride);
        let run = self.runs.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        let (first, spot) = self.runs[run];
        (row < self.count)
            .then(|| Spot { segment: spot.segment, offset: spot.offset + (row - first) * self.stride + inside })
    }

    /// Stretches of rows that lie in one segment: first row, number of rows, place.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64, Spot)> {
        let ends = self.runs.iter().skip(1).map(|(first, _)| *first).chain([self.count]);
        self.runs.iter().zip(ends).map(|(&(first, spot), end)| (first, end - first, spot))
    }
}

/// Assigns places, without any memory yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Bytes that a segment may have.
    limit: u64,
    /// Bytes that each has so far.
    sizes: Vec<u64>,
}

impl Segments {
    /// No places, in segments that the device can bind.
    pub fn new(device: &Device) -> Self {
        Self { limit: segment_bytes(device), sizes: Vec::new() }
    }

    /// A place for a tensor; `what` names it if it is larger than a segment may be.
    pub fn place(&mut self, what: &str, bytes: u64) -> Result<Spot> {
        check(what, self.limit, bytes)?;
        let bytes = bytes.max(1).next_multiple_of(BINDING_ALIGNMENT);
        let fits = self.sizes.last().is_some_and(|size| size + bytes <= self.limit);
        if !fits {
            self.sizes.push(0);
        }
        let segment = self.sizes.len() - 1;
        let offset = self.sizes[segment];
        self.sizes[segment] += bytes;
        Ok(Spot { segment, offset })
    }

    /// Places for an array of rows that lie `stride` bytes apart.
    pub fn place_rows(&mut self, what: &str, count: u64, stride: u64) -> Result<Rows> {
        let stride = stride.max(1).next_multiple_of(BINDING_ALIGNMENT);
        check(what, self.limit, stride)?;
        let mut rows = Rows { stride, runs: Vec::new(), count };
        let mut first = 0;
        while first < count {
            let free = self.sizes.last().map_or(0, |size| (self.limit - size) / stride);
            let fit = if free > 0 { free } else { self.limit / stride }.min(count - first);
            rows.runs.push((first, self.place(what, fit * stride)?));
            first += fit;
        }
        Ok(rows)
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

/// Bytes of the largest segment of a device.
fn segment_bytes(device: &Device) -> u64 {
    device.segment_bytes() / BINDING_ALIGNMENT * BINDING_ALIGNMENT
}

fn check(what: &str, limit: u64, bytes: u64) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::Limit { what: what.to_string(), limit: "bytes of one storage binding", allowed: limit, found: bytes })
}

/// The memory of one kind.
#[derive(Clone, Debug)]
pub struct Storage {
    kind: Kind,
    segments: Vec<Buffer>,
}

impl Storage {
    /// Allocates all places of one kind, filled with zeros; fails before the first allocation if they do not fit.
    pub fn new(device: &Device, kind: Kind, places: &Segments) -> Result<Self> {
        device.check_memory(&kind.to_string(), places.bytes())?;
        let buffer = |&bytes: &u64| device.buffer(&kind.to_string(), bytes);
        let storage = Self { kind, segments: places.sizes.iter().map(buffer).collect::<Result<_>>()? };
        storage.clear(device)?;
        Ok(storage)
    }

    /// Sets every byte to zero, after all that was submitted before.
    pub fn clear(&self, device: &Device) -> Result<()> {
        device.clear(&self.segments)
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The binding of a place that was assigned before.
    pub fn at(&self, spot: Spot) -> Binding<'_> {
        self.segments[spot.segment].at(spot.offset)
    }

    /// Its buffers.
    pub fn segments(&self) -> &[Buffer] {
        &self.segments
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(Buffer::bytes).sum()
    }
}

/// Bytes that an arena grows by although they are not needed yet.
const GROWTH: u64 = 64 << 20;

/// Memory for the values of a call, which grows when a call needs more; its content does not outlive a growth.
///
/// Plans place values in one range of bytes, [`fit`](Self::fit) moves those that would cross a segment's end, and the
/// order of a plan stays valid since a value only ever moves up.
#[derive(Debug)]
pub struct Arena {
    device: Device,
    limit: u64,
    segments: Vec<Buffer>,
}

impl Arena {
    /// An empty arena.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), limit: segment_bytes(device), segments: Vec::new() }
    }

    /// The first offset from `offset` on where `bytes` bytes may lie.
    pub fn fit(&self, what: &str, offset: u64, bytes: u64) -> Result<u64> {
        fit(self.limit, what, offset, bytes)
    }

    /// Grows to hold offsets up to `end`, and by half of what a segment had, at most [`GROWTH`]. True if buffers changed:
    /// recordings that bind the old ones must not be submitted together with new ones.
    pub fn reserve(&mut self, end: u64) -> Result<bool> {
        let needed = (0..end.div_ceil(self.limit)).map(|segment| (end - segment * self.limit).min(self.limit));
        let needed: Vec<u64> = needed.map(|bytes| bytes.next_multiple_of(BINDING_ALIGNMENT)).collect();
        let has = |index: usize| self.segments.get(index).map_or(0, Buffer::bytes);
        let mut grow: Vec<(usize, u64)> = Vec::new();
        for (index, &bytes) in needed.iter().enumerate() {
            if has(index) < bytes {
                let more = has(index) + (has(index) / 2).min(GROWTH) / BINDING_ALIGNMENT * BINDING_ALIGNMENT;
                grow.push((index, bytes.max(more.min(self.limit))));
            }
        }
        self.device.check_memory(&Kind::Arena.to_string(), grow.iter().map(|(_, bytes)| bytes).sum())?;
        for &(index, bytes) in &grow {
            let buffer = self.device.buffer(&Kind::Arena.to_string(), bytes)?;
            match self.segments.get_mut(index) {
                Some(segment) => *segment = buffer,
                None => self.segments.push(buffer),
            }
        }
        Ok(!grow.is_empty())
    }

    /// The binding of an offset that was reserved.
    pub fn at(&self, offset: u64) -> Binding<'_> {
        self.segments[(offset / self.limit) as usize].at(offset % self.limit)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(Buffer::bytes).sum()
    }
}

fn fit(limit: u64, what: &str, offset: u64, bytes: u64) -> Result<u64> {
    check(what, limit, bytes)?;
    let offset = offset.next_multiple_of(BINDING_ALIGNMENT);
    let inside = offset % limit;
    if inside + bytes <= limit { Ok(offset) } else { Ok(offset - inside + limit) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_tensor_crosses_a_segment() {
        let mut places = Segments { limit: 1024, sizes: Vec::new() };
        let spots: Vec<Spot> =
            [4, 256, 257, 300, 1024, 0, 1].iter().map(|&bytes| places.place("t", bytes).unwrap()).collect();
        let want = [(0, 0), (0, 256), (0, 512), (1, 0), (2, 0), (3, 0), (3, 256)];
        assert_eq!(spots.iter().map(|s| (s.segment, s.offset)).collect::<Vec<_>>(), want);
        assert_eq!((places.sizes.clone(), places.bytes()), (vec![1024, 512, 1024, 512], 3072));
        let error = places.place("embed.weight", 1025).unwrap_err().to_string();
        assert!(error.contains("embed.weight") && error.contains("at most 1024, found 1025"), "{error}");
    }

    #[test]
    fn rows_fill_segments_and_none_crosses_one() {
        let mut places = Segments { limit: 2048, sizes: Vec::new() };
        places.place("t", 1200).unwrap();
        let rows = places.place_rows("w", 9, 500).unwrap();
        assert_eq!(rows.stride, 512);
        // 1280 bytes are taken, so one row fits into the first segment and four into each other.
        let runs: Vec<_> = rows.runs().map(|(first, count, spot)| (first, count, spot.segment, spot.offset)).collect();
        assert_eq!(runs, [(0, 1, 0, 1280), (1, 4, 1, 0), (5, 4, 2, 0)]);
        let at = |offset| rows.at(offset).map(|spot| (spot.segment, spot.offset));
        assert_eq!([0, 4, 511].map(at), [Some((0, 1280)), Some((0, 1284)), Some((0, 1791))]);
        assert_eq!([512, 2559, 2560].map(at), [Some((1, 0)), Some((1, 2047)), Some((2, 0))]);
        assert_eq!([4607, 4608].map(at), [Some((2, 2047)), None]);
        assert!(places.place_rows("w", 1, 2049).is_err());
        assert_eq!(places.place_rows("none", 0, 4).unwrap().at(0), None);
    }

    #[test]
    fn values_of_an_arena_move_up_to_the_next_segment() {
        let at = |offset, bytes| fit(1024, "v", offset, bytes).unwrap();
        assert_eq!([at(0, 1024), at(1, 768), at(256, 769), at(1023, 1), at(1024, 5)], [0, 256, 1024, 1024, 1024]);
        assert!(fit(1024, "v", 0, 1025).is_err());
        // Places beyond four gigabytes do not wrap.
        assert_eq!(fit(128 << 20, "v", (5 << 30) - 256, 512).unwrap(), 5 << 30);
    }

    #[test]
    fn storage_begins_as_zeros_and_is_cleared() {
        let device = Device::open().unwrap();
        let mut places = Segments { limit: 4096, sizes: Vec::new() };
        let (a, b) = (places.place("a", 4096).unwrap(), places.place("b", 12).unwrap());
        let storage = Storage::new(&device, Kind::States, &places).unwrap();
        assert_eq!((storage.segments().len(), storage.bytes(), storage.kind()), (2, 4352, Kind::States));
        let read = |spot| {
            let mut bytes = [9; 12];
            device.download(storage.at(spot), &mut bytes).unwrap();
            bytes
        };
        assert_eq!((read(a), read(b)), ([0; 12], [0; 12]));
        device.upload(storage.at(b), &[1; 12]).unwrap();
        assert_eq!((read(a), read(b)), ([0; 12], [1; 12]));
        storage.clear(&device).unwrap();
        assert_eq!(read(b), [0; 12]);
    }

    #[test]
    fn an_arena_grows_on_demand_and_never_shrinks() {
        let device = Device::open().unwrap();
        let mut arena = Arena { device: device.clone(), limit: 4096, segments: Vec::new() };
        let sizes = |arena: &Arena| arena.segments.iter().map(Buffer::bytes).collect::<Vec<_>>();
        assert!(!arena.reserve(0).unwrap());
        assert!(arena.reserve(1000).unwrap());
        assert_eq!(sizes(&arena), [1024]);
        assert!(!arena.reserve(1024).unwrap());
        // At least by half.
        assert!(arena.reserve(1025).unwrap());
        assert_eq!(sizes(&arena), [1536]);
        assert!(arena.reserve(9000).unwrap());
        assert_eq!(sizes(&arena), [4096, 4096, 1024]);
        assert!(!arena.reserve(10).unwrap());
        assert_eq!(arena.bytes(), 9216);
        let places =
            [0, 4096 - 256, 4096, 8192].map(|offset| (arena.at(offset).buffer.bytes(), arena.at(offset).offset));
        assert_eq!(places, [(4096, 0), (4096, 3840), (4096, 0), (1024, 0)]);
    }

    #[test]
    fn what_cannot_fit_is_refused_before_anything_is_allocated() {
        let device = Device::open().unwrap();
        let mut places = Segments { limit: 128 << 20, sizes: Vec::new() };
        // A petabyte.
        places.place_rows("w", 1 << 23, 128 << 20).unwrap();
        let before = device.allocated_bytes();
        let error = Storage::new(&device, Kind::Parameters, &places).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        assert!(error.to_string().contains("parameters needs 1125899906842624 bytes"), "{error}");
        assert_eq!(device.allocated_bytes(), before);
        assert!(!device.is_lost());
    }
}
