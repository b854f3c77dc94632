// One element of the iteration space after another, in row-major order; source and target follow from its
// coordinates. Outside a window the target takes 0 and nothing is read. No barriers.
let first = group * 1024u;
let left = ${count} - first;
for (var step = lane; step < min(left, 1024u); step += 256u) {
    let element = first + step;
    ${coordinates}
    var value = ${zero};
    if (${inside}) {
        value = ${load};
    }
    ${store}
}
