//! Which form a product takes: the one place that knows.
//!
//! In come the sizes of a product; out come forms with conditions, best first. [`TABLE`] is what measurements said;
//! `cargo xtask tune` measures again and proposes its rows.

use crate::dim::Dim;
use crate::schedule::Condition;

/// The k step of a part.
pub(super) const DEPTH: u32 = 16;

/// How a contraction runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Register tiles.
    Tile(Tile),
    /// One row: lanes share a column's sum.
    Vector(Vector),
}

/// The shape of a register tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// Rows of one thread, a multiple of 4; it has 4 columns.
    pub each: u32,
    /// Parts of the workgroup among which the sum is split.
    pub parts: u32,
}

/// How one row times a matrix is shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector {
    /// Threads of a workgroup.
    pub threads: u32,
    /// Threads that share a column's sum where the matrix is dense along the sum; a quarter of them else.
    pub lanes: u32,
}

impl Tile {
    /// Threads of a part.
    pub(super) const fn threads(&self) -> u32 {
        self.rows / self.each * (self.columns / 4)
    }

    /// Vec4s of workgroup memory for one part with so many rights.
    pub(super) const fn share(&self, rights: u32) -> u32 {
        DEPTH * (self.rows / 4 + 1 + rights * (self.columns / 4 + 1))
    }
}

/// The sizes that decide. Those of all products of a launch count together, so that these take one form and share a
/// dispatch.
pub(in super::super) struct Choosing {
    /// Rows of the result, without batches.
    pub rows: Dim,
    /// What the launch makes for one row.
    pub columns: Dim,
    /// Elements that the launch makes.
    pub results: Dim,
}

/// A row of the table: products within all its limits take its form.
struct Row {
    /// Rows, at most.
    rows: i64,
    /// Columns, at most; what is known only at run time counts as many.
    columns: i64,
    /// Elements of the results, at most.
    results: i64,
    /// Its form.
    form: Form,
    /// Only where the sizes are numbers.
    fixed: bool,
    /// Needs more workgroup memory than every device has: a row without that follows.
    memory: bool,
}

const ANY: i64 = i64::MAX;

const fn tile(rows: u32, columns: u32, each: u32, parts: u32) -> Form {
    Form::Tile(Tile { rows, columns, each, parts })
}

const fn vector(threads: u32, lanes: u32) -> Form {
    Form::Vector(Vector { threads, lanes })
}

/// The first row that fits is taken. Where the number of rows is known only at run time, every row that may fit is a
/// text of the program, and texts are start-up time: the rows without `fixed` are few, those with it finer.
///
/// Forms are `tile(rows, columns, rows of a thread, parts of the sum)` and `vector(threads, lanes of a column)`. What
/// decides is how many workgroups there are for the device's processors, about 130 where this was measured: small
/// results take small tiles and split the sum, and change to the next form where their workgroups exceed that number.
#[rustfmt::skip]
const TABLE: [Row; 7] = [
    Row { rows: 1,   columns: 1024, results: ANY,     form: vector(256, 128),   fixed: false, memory: false },
    Row { rows: 1,   columns: 8192, results: ANY,     form: vector(256, 64),    fixed: false, memory: false },
    Row { rows: 1,   columns: ANY,  results: ANY,     form: vector(256, 32),    fixed: false, memory: false },
    Row { rows: ANY, columns: ANY,  results: 1 << 17, form: tile(32, 32, 4, 4), fixed: false, memory: true },
    Row { rows: ANY, columns: ANY,  results: 1 << 18, form: tile(32, 64, 8, 4), fixed: true,  memory: true },
    Row { rows: ANY, columns: ANY,  results: 7 << 16, form: tile(32, 32, 4, 2), fixed: false, memory: false },
    Row { rows: ANY, columns: ANY,  results: ANY,     form: tile(64, 64, 8, 1), fixed: false, memory: false },
];

/// The forms of a product with their conditions, best first; the last has [`Condition::Always`]. Bounds of sizes decide
/// nothing, so that a generous one changes no text.
pub(in super::super) fn choose(sizes: &Choosing) -> Vec<(Condition, Form)> {
    let mut ways: Vec<(Condition, Form)> = vec![];
    for row in &TABLE {
        if row.fixed && sizes.results.constant().is_none() || sizes.columns.constant().unwrap_or(ANY) > row.columns {
            continue;
        }
        let mut all = vec![];
        let mut fits = true;
        for (size, most) in [(&sizes.rows, row.rows), (&sizes.results, row.results)] {
            match size.constant() {
                _ if most == ANY => {}
                Some(size) => fits &= size <= most,
                None => all.push(Condition::AtMost(size.clone(), most)),
            }
        }
        if !fits {
            continue;
        }
        if row.memory {
            // How many bytes it takes is known when it is written.
            all.push(Condition::WorkgroupMemory(0));
        }
        let condition = match all.len() {
            0 => Condition::Always,
            1 => all.remove(0),
            _ => Condition::All(all),
        };
        // What the same condition took before is taken.
        if ways.iter().any(|(known, _)| *known == condition) {
            continue;
        }
        let last = condition == Condition::Always;
        ways.push((condition, row.form));
        if last {
            break;
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Symbols;

    fn chosen(rows: &Dim, columns: &Dim) -> Vec<(Condition, Form)> {
        choose(&Choosing { rows: rows.clone(), columns: columns.clone(), results: rows * columns })
    }

    fn fixed(rows: i64, columns: i64) -> Vec<Form> {
        chosen(&Dim::from(rows), &Dim::from(columns)).into_iter().map(|(_, form)| form).collect()
    }

    #[test]
    fn the_last_form_holds_always_and_no_other_does() {
        let mut symbols = Symbols::default();
        let (m, n) = (symbols.declare("m", 1, 9, 1), symbols.declare("n", 1, 9, 1));
        let sizes = [0, 1, 2, 128, 4096].map(Dim::from);
        for rows in sizes.iter().chain([&m]) {
            for columns in sizes.iter().chain([&n]) {
                let ways = chosen(rows, columns);
                let always: Vec<bool> = ways.iter().map(|(condition, _)| *condition == Condition::Always).collect();
                assert_eq!(always.iter().position(|always| *always), Some(ways.len() - 1), "{ways:?}");
            }
        }
    }

    #[test]
    fn every_form_fits_the_threads_that_every_device_has_and_shares_its_work_out_evenly() {
        for row in &TABLE {
            match row.form {
                Form::Vector(Vector { threads, lanes }) => {
                    assert!(threads <= 256 && threads % lanes == 0 && lanes % 4 == 0, "{threads} {lanes}");
                }
                Form::Tile(tile) => {
                    let threads = tile.threads();
                    assert!(threads * tile.parts <= 256 && tile.each % 4 == 0, "{tile:?}");
                    // Quads staged by each thread of a part, results finished by each, lanes for each row.
                    for (whole, by) in [
                        (tile.rows * DEPTH / 4, threads),
                        (tile.columns * DEPTH / 4, threads),
                        (tile.rows * tile.columns / 4, threads * tile.parts),
                        (threads * tile.parts, tile.rows),
                    ] {
                        assert!(whole >= by && whole % by == 0, "{tile:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_have_one_number_of_threads_so_that_those_of_one_launch_share_a_dispatch() {
        let threads = TABLE.iter().filter_map(|row| match row.form {
            Form::Vector(vector) => Some(vector.threads),
            Form::Tile(_) => None,
        });
        assert!(threads.clone().all(|threads| threads == 256) && threads.count() == 3);
    }

    #[test]
    fn small_results_split_the_sum_and_large_ones_take_large_tiles() {
        assert_eq!(fixed(1, 576), [vector(256, 128)]);
        assert_eq!(fixed(1, 3072), [vector(256, 64)]);
        assert_eq!(fixed(1, 49_152), [vector(256, 32)]);
        assert_eq!(fixed(128, 576), [tile(32, 32, 4, 4), tile(32, 32, 4, 2)]);
        assert_eq!(fixed(128, 1536), [tile(32, 64, 8, 4), tile(32, 32, 4, 2)]);
        assert_eq!(fixed(128, 3072), [tile(32, 32, 4, 2)]);
        assert_eq!(fixed(512, 1024), [tile(64, 64, 8, 1)]);
        assert_eq!(fixed(4096, 4096), [tile(64, 64, 8, 1)]);
    }

    #[test]
    fn an_unknown_number_of_rows_takes_four_forms_whatever_the_columns_are() {
        let mut symbols = Symbols::default();
        let (m, n) = (symbols.declare("m", 1, 9, 1), symbols.declare("n", 1, 9, 1));
        for (columns, first) in
            [(Dim::from(576), vector(256, 128)), (Dim::from(49_152), vector(256, 32)), (n, vector(256, 32))]
        {
            let forms: Vec<Form> = chosen(&m, &columns).into_iter().map(|(_, form)| form).collect();
            assert_eq!(forms, [first, tile(32, 32, 4, 4), tile(32, 32, 4, 2), tile(64, 64, 8, 1)]);
        }
    }
}
