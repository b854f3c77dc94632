//! Memory of the host device: words of four bytes that any number of launches may read and one may write.
//!
//! A launch holds everything that it touches as a [`Space`], so that programs on several threads may share memory: it
//! waits for whoever writes what it reads. Large memories lie in huge pages where the system has them, since random
//! small ones cost a seventh of the bandwidth.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use smallvec::SmallVec;

use crate::view::{Source, Target};

/// Bytes of a cache line, which every memory is aligned to.
const LINE: usize = 64;
/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; LINE / 4]);

// SAFETY: all bits of the words are values, and the words fill the line, so there is no padding.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Line {}

enum Words {
    Lines(Vec<Line>),
    /// A mapping, and how many of its bytes lie before the first huge page.
    Pages(memmap2::MmapMut, usize),
}

impl Words {
    fn new(bytes: usize) -> Option<Words> {
        let bytes = bytes.max(1).checked_next_multiple_of(LINE)?;
        if bytes < 2 * HUGE {
            let mut lines = Vec::new();
            lines.try_reserve_exact(bytes / LINE).ok()?;
            lines.resize(bytes / LINE, Line([0; LINE / 4]));
            return Some(Words::Lines(lines));
        }
        let map = memmap2::MmapMut::map_anon(bytes.checked_add(HUGE)?).ok()?;
        // Only advice: without huge pages everything works, more slowly.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let skip = map.as_ptr().align_offset(HUGE);
        Some(Words::Pages(map, if skip <= HUGE { skip } else { 0 }))
    }

    fn words(&mut self) -> &mut [u32] {
        match self {
            Words::Lines(lines) => bytemuck::cast_slice_mut(lines),
            Words::Pages(map, skip) => {
                let bytes = &mut map[*skip..];
                let whole = bytes.len() / LINE * LINE;
                bytemuck::cast_slice_mut(&mut bytes[..whole])
            }
        }
    }

    fn shared(&self) -> &[u32] {
        match self {
            Words::Lines(lines) => bytemuck::cast_slice(lines),
            Words::Pages(map, skip) => bytemuck::cast_slice(&map[*skip..][..(map.len() - skip) / LINE * LINE]),
        }
    }
}

/// A handle of some memory; clones are handles of the same.
#[derive(Clone)]
pub struct Memory {
    words: Arc<RwLock<Words>>,
    bytes: u64,
}

impl Memory {
    /// Zeros; none if the system has no memory of this size.
    pub fn new(bytes: u64) -> Option<Memory> {
        let words = Words::new(usize::try_from(bytes).ok()?)?;
        Some(Memory { words: Arc::new(RwLock::new(words)), bytes })
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether this is the only handle.
    pub fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.words) == 1
    }

    /// Whether both are handles of one memory.
    pub fn is_same(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.words, &other.words)
    }

    /// Everything that it holds, for as long as nobody writes.
    pub fn read(&self) -> Reading<'_> {
        Reading(self.words.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets `change` alter the words; waits until nobody reads or writes them.
    pub fn change<R>(&self, change: impl FnOnce(&mut [u32]) -> R) -> R {
        change(self.words.write().unwrap_or_else(PoisonError::into_inner).words())
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} bytes)", self.bytes)
    }
}

/// The words of a memory that nobody writes while this is held.
pub struct Reading<'a>(RwLockReadGuard<'a, Words>);

impl std::ops::Deref for Reading<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.0.shared()
    }
}

/// What is held until the call is over.
#[allow(dead_code)]
enum Held<'a> {
    Read(RwLockReadGuard<'a, Words>),
    Write(RwLockWriteGuard<'a, Words>),
}

/// All memories of a call, held until it is over.
pub struct Space<'a> {
    _held: SmallVec<[Held<'a>; 16]>,
    /// First word, number of words and whether they may be written, by the index of the memory.
    spans: SmallVec<[(*mut u32, usize, bool); 16]>,
}

impl<'a> Space<'a> {
    /// Holds memories, each to be read or (`true`) written. None may be listed twice.
    pub fn new(memories: impl Iterator<Item = (&'a Memory, bool)>) -> Space<'a> {
        let mut wanted: SmallVec<[(usize, &Memory, bool); 16]> =
            memories.enumerate().map(|(index, (memory, write))| (index, memory, write)).collect();
        // In one order for all calls, so that no two wait for each other.
        wanted.sort_unstable_by_key(|(_, memory, _)| Arc::as_ptr(&memory.words).addr());
        let mut held = SmallVec::new();
        let mut spans = SmallVec::from_elem((std::ptr::null_mut(), 0, false), wanted.len());
        for (index, memory, write) in wanted {
            if write {
                let mut guard = memory.words.write().unwrap_or_else(PoisonError::into_inner);
                let words = guard.words();
                spans[index] = (words.as_mut_ptr(), words.len(), true);
                held.push(Held::Write(guard));
            } else {
                let guard = memory.words.read().unwrap_or_else(PoisonError::into_inner);
                let words = guard.shared();
                spans[index] = (words.as_ptr().cast_mut(), words.len(), false);
                held.push(Held::Read(guard));
            }
        }
        Space { _held: held, spans }
    }

    /// From a word of memory `index` to its end; none if that is past the end.
    pub fn source(&self, index: usize, word: usize) -> Option<Source<'_>> {
        let (first, words, _) = *self.spans.get(index)?;
        // SAFETY: the memory is held while `self` lives, and the stretch lies inside of it.
        (word <= words).then(|| unsafe { Source::from_raw(first.add(word), words - word) })
    }

    /// The same to write; none also if the memory is only read. A space belongs to one thread, and what runs on it
    /// runs one after the other, so stretches of earlier launches do not matter.
    pub fn target(&self, index: usize, word: usize) -> Option<Target<'_>> {
        let (first, words, write) = *self.spans.get(index)?;
        // SAFETY: as for sources; the memory is held for writing.
        (write && word <= words).then(|| unsafe { Target::from_raw(first.add(word), words - word) })
    }
}
