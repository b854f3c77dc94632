// One row: ${columns} columns a workgroup, ${count} threads a column; group = z * column tiles + column tile. Threads
// of a column each take every ${count}th element of the sum (or every ${count}th four) and meet in workgroup memory.
// Columns beyond the last walk that one, so every barrier is met by all; they write nothing.
let column_tiles = ${column_tiles};
let z = group / column_tiles;
let column = ${column};
let thread = ${thread};
let slot = ${slot};
let n = min(group % column_tiles * ${columns}u + column, ${n} - 1u);
${sweeps}
if (thread == 0u && group % column_tiles * ${columns}u + column == n) {
    ${finish}
}
