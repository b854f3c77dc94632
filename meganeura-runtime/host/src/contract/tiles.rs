//! How the result of a contraction is cut into tiles, and tiles are gathered into parts of a launch.
//!
//! Sizes decide, never the number of threads. The widths are those at which the matrix product loses nothing against
//! one call for everything: its own tile has 64 columns, and it packs what it needs of a side once a call.

use crate::product::FEW;

/// Nanoseconds that a part should take at least, so that handing it to a thread does not matter.
const LEAST: usize = 4_000;
/// Nanoseconds above which a tile is halved if there are few.
const MOST: usize = 20_000;
/// Tiles above which none is halved, if tiles may be narrow and if they had better be wide.
const ENOUGH: [usize; 2] = [4, 2];

/// What the cut depends on beside sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    /// Results go straight to memory; else a tile is to stay in the cache until it is finished.
    pub direct: bool,
    /// The side that has the rows is not dense along the summed axis, so that the product packs it for every tile.
    pub wide: bool,
}

/// The cut of a result of `outer` matrices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tiles {
    pub outer: usize,
    pub rows: usize,
    pub columns: usize,
    /// Rows of a tile, less at the end.
    pub height: usize,
    /// Columns of a tile, less at the end.
    pub width: usize,
    /// Tiles of a part, less in the last.
    pub together: usize,
}

/// One tile: which matrix, and its first and number of rows and columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tile {
    pub outer: usize,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl Tiles {
    /// For products over `depth` elements in all terms together.
    pub fn new(outer: usize, rows: usize, columns: usize, depth: usize, form: Form) -> Tiles {
        let (mut height, mut width) = (rows.max(1), columns.max(1));
        // Multiply-adds at 50 a nanosecond, words of the larger side at 4.
        let cost = |height: usize, width: usize| depth * (height * width / 50 + height.max(width) / 4);
        if rows <= FEW {
            width = few(columns, depth);
        } else if columns <= FEW {
            height = few(rows, depth);
        } else {
            let across = if form.wide { 512 } else { 128 };
            width = columns.div_ceil(paired((columns + across / 2) / across)).next_multiple_of(64).min(columns);
            height = even(rows, if form.direct { 512 } else { 32_768 / across });
            let enough = ENOUGH[usize::from(form.wide)];
            while outer * rows.div_ceil(height) * columns.div_ceil(width) < enough && cost(height, width) > MOST {
                match (width > 64, height > 64) {
                    (true, _) if !form.wide || width >= height => width = (width / 2).next_multiple_of(64),
                    (_, true) => height = even(height, height.div_ceil(2)),
                    _ => break,
                }
            }
        }
        let together = (LEAST / cost(height, width).max(1)).max(1);
        Tiles { outer, rows, columns, height, width, together }
    }

    fn across(&self) -> usize {
        self.columns.div_ceil(self.width)
    }

    fn down(&self) -> usize {
        self.rows.div_ceil(self.height)
    }

    /// The number of tiles.
    pub fn count(&self) -> usize {
        self.outer * self.across() * self.down()
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.count().div_ceil(self.together)
    }

    /// The tiles of a part.
    pub fn of(&self, part: usize) -> impl Iterator<Item = Tile> + '_ {
        (part * self.together..((part + 1) * self.together).min(self.count())).map(|k| self.tile(k))
    }

    /// Tiles below each other follow each other, so that they find the columns' side in the cache.
    fn tile(&self, k: usize) -> Tile {
        let (down, across) = (self.down(), self.across());
        let (row, column) = (k % down * self.height, k / down % across * self.width);
        let (rows, columns) = (self.height.min(self.rows - row), self.width.min(self.columns - column));
        Tile { outer: k / down / across, row, rows, column, columns }
    }
}

/// The most even tiles of at most `most`, in multiples of what the product takes at a time.
fn even(size: usize, most: usize) -> usize {
    size.div_ceil(paired(size.div_ceil(most))).next_multiple_of(8).min(size)
}

/// Two threads would wait for the last of few parts if their number was odd.
fn paired(parts: usize) -> usize {
    match parts {
        0 | 1 => 1,
        3..16 => parts.next_multiple_of(2),
        _ => parts,
    }
}

/// Rows of the large side of a product that memory bounds: 128 KiB of it, at least 128 so that rows across the summed
/// axis are not read in crumbs, and at most 64 pieces.
fn few(size: usize, depth: usize) -> usize {
    let wanted = (32_768 / depth.max(1)).max(size.div_ceil(64)).clamp(128, 8192);
    size.div_ceil(size.div_ceil(wanted).max(1)).next_multiple_of(16).min(size).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form { direct: true, wide: false };

    #[test]
    fn tiles_cover_every_element_once() {
        for (outer, rows, columns, depth) in [
            (1, 1, 1, 1),
            (3, 1, 700, 9),
            (2, 700, 3, 2000),
            (1, 513, 577, 70),
            (1, 64, 128, 784),
            (7, 5, 0, 3),
            (2, 0, 9, 1),
        ] {
            for (direct, wide) in [(false, false), (false, true), (true, false), (true, true)] {
                let tiles = Tiles::new(outer, rows, columns, depth, Form { direct, wide });
                let mut hits = vec![0; outer * rows * columns];
                for tile in (0..tiles.parts()).flat_map(|part| tiles.of(part)) {
                    for row in tile.row..tile.row + tile.rows {
                        for column in tile.column..tile.column + tile.columns {
                            hits[(tile.outer * rows + row) * columns + column] += 1;
                        }
                    }
                }
                assert!(hits.iter().all(|hit| *hit == 1), "{tiles:?}");
            }
        }
    }

    #[test]
    fn work_for_several_threads_has_several_parts() {
        for (rows, columns, depth) in [(64, 128, 784), (128, 576, 576), (1, 1536, 576), (1, 49152, 576), (3136, 64, 64)]
        {
            let tiles = Tiles::new(1, rows, columns, depth, FORM);
            assert!((2..=400).contains(&tiles.parts()), "{tiles:?}");
        }
        assert_eq!(Tiles::new(1, 16, 16, 16, FORM).parts(), 1);
    }
}
