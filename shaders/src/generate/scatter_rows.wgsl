// One row of the result a workgroup. 256 ids at a time are looked at, a bit of workgroup memory says which of them name
// this row; then every lane adds the elements of these rows that are its own, in order. All lanes reach the barriers:
// the bounds of both loops are the same for all of them.
let j = group % ${rows};
let o = group / ${rows};
for (var i = lane; i < ${inner}; i += 256u) {
    ${clear}
}
for (var far = 0u; far < ${values}; far += 256u) {
    if (lane < 8u) {
        atomicStore(&hits[lane], 0u);
    }
    workgroupBarrier();
    let mine = far + lane;
    if (mine < ${values}) {
        if (min(${id}, ${last}) == j) {
            atomicOr(&hits[lane / 32u], 1u << (lane % 32u));
        }
    }
    workgroupBarrier();
    for (var word = 0u; word < 8u; word++) {
        var bits = atomicLoad(&hits[word]);
        while (bits != 0u) {
            let at = far + word * 32u + firstTrailingBit(bits);
            bits &= bits - 1u;
            for (var i = lane; i < ${inner}; i += 256u) {
                ${add}
            }
        }
    }
    workgroupBarrier();
}
