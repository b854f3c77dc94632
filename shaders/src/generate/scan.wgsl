// 256 elements of the row at a time: in eight rounds each lane takes in the total of the lanes 1, 2, 4, .. before it
// (Hillis and Steele, 1986), then what all earlier elements make is put in front. All lanes reach the barriers: the
// loops have the same bounds for all of them.
var carried = ${none};
for (var far = 0u; far < ${length}; far += 256u) {
    let j = far + lane;
    let at = ${at};
    var up_to = ${none};
    if (j < ${length}) {
        up_to = ${load};
    }
    ${parts}[lane] = up_to;
    workgroupBarrier();
    for (var distance = 1u; distance < 256u; distance *= 2u) {
        if (lane >= distance) {
            up_to = ${parts}[lane - distance] ${op} up_to;
        }
        workgroupBarrier();
        ${parts}[lane] = up_to;
        workgroupBarrier();
    }
    var before = ${none};
    if (lane > 0u) {
        before = ${parts}[lane - 1u];
    }
    if (j < ${length}) {
        let total = carried ${op} ${own};
        ${store}
    }
    carried = carried ${op} ${parts}[255u];
    workgroupBarrier();
}
