// Sums over all axes but the last: 16 columns a workgroup, column = 16 group + lane % 16, and rows lane / 16,
// lane / 16 + 16, ... for a thread; the threads of a column meet in workgroup memory (all reach the barrier; those
// beyond the last column walk that one and write nothing).
let wanted = group * 16u + lane % 16u;
let column = min(wanted, ${columns} - 1u);
var total = ${zero};
for (var far = 0u; far < ${rows}; far += 512u) {
    var near = ${zero};
    for (var row = far + lane / 16u; row < min(${rows}, far + 512u); row += 16u) {
        ${loads}
        near += ${value};
    }
    total += near;
}
${parts}[lane] = total;
workgroupBarrier();
if (lane < 16u && wanted == column) {
    for (var other = lane + 16u; other < 256u; other += 16u) {
        total += ${parts}[other];
    }
    ${store}
}
