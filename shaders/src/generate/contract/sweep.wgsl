{
    ${rows}
    ${before}
    let steps = ${steps};
    for (var step = 0u; step <= steps; step++) {
        let k0 = (step * ${parts}u + part) * ${depth}u;
        if (step < steps) {
            ${fetch}
        }
        if (step > 0u) {
            for (var kk = 0u; kk < ${depth}u; kk++) {
                ${multiply}
            }
        }
        workgroupBarrier();
        if (step < steps) {
            ${leave}
        }
        workgroupBarrier();
    }
    ${after}
}
