// A tile of ${bm} rows and ${bn} columns for a workgroup: group = (z * row tiles + row tile) * column tiles + column
// tile. ${parts} parts of ${each} threads each take every ${parts}th step of k; a thread of a part holds ${tm} rows
// and 4 columns: rows 4 ty .. 4 ty + 4 (and as many again further down), columns 4 tx .. 4 tx + 4.
// Workgroup memory holds k-major tiles, a row of vec4 for each k, padded by one: a left side first, then its rights.
// In each turn the next elements are fetched into registers while the products of those before run; all threads make
// the same turns, so every barrier is met by all. At the end parts are summed through workgroup memory, in order.
let thread = lane % ${each}u;
let part = lane / ${each}u;
let row_tiles = ${row_tiles};
let column_tiles = ${column_tiles};
let z = group / (row_tiles * column_tiles);
let m0 = (group / column_tiles) % row_tiles * ${bm}u;
let n0 = group % column_tiles * ${bn}u;
let tx = thread % ${across}u;
let ty = thread / ${across}u;
${accumulators}
${sweeps}
${finish}
