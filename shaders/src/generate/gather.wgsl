// One element of the result after another (four along the last axis where all is dense there): its id picks the row
// of the source, one beyond the last stands for the last, so nothing outside is read. No barriers.
let first = group * ${block}u;
let left = ${count} - first;
for (var step = lane; step < min(left, ${block}u); step += 256u) {
    let element = first + step;
    ${coordinates}
    let id = min(${id}, ${last});
    ${move}
}
