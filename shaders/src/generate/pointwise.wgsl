// One element of the result after another, in row-major order; its coordinates along the merged axes follow by
// division, and every operand moves along them by its own strides. With vec4 the index counts fours along the last
// axis. The loop runs over what is left, so that no index passes the count. No barriers.
let first = group * ${block}u;
let left = ${count} - first;
for (var step = lane; step < min(left, ${block}u); step += ${threads}u) {
    let ${index} = first + step;
    ${body}
}
