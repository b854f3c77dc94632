// One element of the iteration space after another, in row-major order; source and target follow from its
// coordinates. Outside a window the target takes 0 and nothing is read. Where all
// is dense and aligned along the last axis, the index counts fours along it. No barriers.
let first = group * ${block}u;
let left = ${count} - first;
for (var step = lane; step < min(left, ${block}u); step += 256u) {
    let element = first + step;
    ${coordinates}
    var value = ${zero};
    if (${inside}) {
        value = ${load};
    }
    ${store}
}
