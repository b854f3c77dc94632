//! Stretches of memory as kernels see them: where a value begins and how far memory goes from there.
//!
//! A result may lie over an argument, and threads write parts of one result at the same time, so these are no slices:
//! kernels take slices of the rows that they work on, and every slice is checked against the stretch's end.

use std::marker::PhantomData;

/// A stretch to read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    first: *const u32,
    words: usize,
    life: PhantomData<&'a [u32]>,
}

/// A stretch to write.
#[derive(Debug)]
pub struct Target<'a> {
    first: *mut u32,
    words: usize,
    life: PhantomData<&'a mut [u32]>,
}

// SAFETY: words may be read from any thread; who makes a stretch vouches that nobody writes them but its own launch.
unsafe impl Send for Source<'_> {}
// SAFETY: as above.
unsafe impl Sync for Source<'_> {}
// SAFETY: words may be written from any thread; parts of one launch write disjoint words.
unsafe impl Send for Target<'_> {}
// SAFETY: as above.
unsafe impl Sync for Target<'_> {}

impl<'a> Source<'a> {
    /// Of a slice.
    pub fn new(words: &'a [u32]) -> Source<'a> {
        Source { first: words.as_ptr(), words: words.len(), life: PhantomData }
    }

    /// # Safety
    ///
    /// The words are readable for `'a`, and nobody but the launch that this is for writes them.
    pub(crate) unsafe fn from_raw(first: *const u32, words: usize) -> Source<'a> {
        Source { first, words, life: PhantomData }
    }

    /// How far it goes.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The address of its first word.
    pub fn address(&self) -> usize {
        self.first.addr()
    }

    pub(crate) fn first(&self) -> *const u32 {
        self.first
    }

    /// Some of its elements.
    ///
    /// # Safety
    ///
    /// Nobody writes them while the slice lives.
    #[inline(always)]
    pub(crate) unsafe fn slice<T: bytemuck::Pod>(&self, at: usize, count: usize) -> &'a [T] {
        const { assert!(size_of::<T>() == 4 && align_of::<T>() == 4) }
        assert!(at <= self.words && count <= self.words - at, "a launch checks its stretches before it runs");
        // SAFETY: inside the stretch; the caller vouches for writers.
        unsafe { std::slice::from_raw_parts(self.first.add(at).cast(), count) }
    }
}

impl<'a> Target<'a> {
    /// Of a slice.
    pub fn new(words: &'a mut [u32]) -> Target<'a> {
        Target { first: words.as_mut_ptr(), words: words.len(), life: PhantomData }
    }

    /// # Safety
    ///
    /// The words are writable for `'a`, and nobody but the launch that this is for touches them.
    pub(crate) unsafe fn from_raw(first: *mut u32, words: usize) -> Target<'a> {
        Target { first, words, life: PhantomData }
    }

    /// How far it goes.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The address of its first word.
    pub fn address(&self) -> usize {
        self.first.addr()
    }

    pub(crate) fn first(&self) -> *mut u32 {
        self.first
    }

    /// Some of its elements.
    ///
    /// # Safety
    ///
    /// Nobody else reads or writes them while the slice lives.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice<T: bytemuck::Pod>(&self, at: usize, count: usize) -> &'a mut [T] {
        const { assert!(size_of::<T>() == 4 && align_of::<T>() == 4) }
        assert!(at <= self.words && count <= self.words - at, "a launch checks its stretches before it runs");
        // SAFETY: inside the stretch; the caller vouches that it is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(at).cast(), count) }
    }
}
