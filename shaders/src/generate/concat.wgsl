// One element of the result after another (four along the last axis where all is dense there), from the argument that
// its row lies in. No barriers.
let first = group * ${block}u;
let left = ${count} - first;
for (var step = lane; step < min(left, ${block}u); step += 256u) {
    let element = first + step;
    ${coordinates}
    ${choices}
}
