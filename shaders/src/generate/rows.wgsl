// One row of the result for ${lanes} lanes, ${rows} rows for a workgroup: row = ${rows} group + lane / ${lanes}.
// Passes over the row gather its reductions (workgroup memory, barriers: threads without a row walk the last one and
// write nothing); the last pass writes.
let lane_of_row = lane % ${lanes}u;
let slot = lane - lane_of_row;
let wanted = group * ${rows}u + lane / ${lanes}u;
let row = min(wanted, ${count} - 1u);
${bases}
${passes}
if (wanted == row) {
    ${write}
}
