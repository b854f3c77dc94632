// One element of the result a thread, which walks over all ids of its line. No barriers.
let element = group * 256u + lane;
if (element < ${count}) {
    ${coordinates}
    var total = ${zero};
    for (var at = 0u; at < ${values}; at++) {
        if (min(${id}, ${last}) == j) {
            total += ${value};
        }
    }
    ${store}
}
