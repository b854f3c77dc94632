// AdamW: x -= lr decay x, then Adam's step without a penalty. Element = 256 workgroup + lane, all arrays alike; no barriers.
struct P {
    groups: u32,
    count: u32,
    lr: u32,
    decay: u32,
    beta1: u32,
    beta2: u32,
    eps: u32,
    correction1: u32,
    correction2: u32,
}
var<storage, read_write> b0: array<f32>;
var<storage> b1: array<f32>;
var<storage, read_write> b2: array<f32>;
var<storage, read_write> b3: array<f32>;
var<uniform> p: P;
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let workgroup = id.x + id.y * grid.x;
    if (workgroup >= p.groups || lane >= p.count - workgroup * 256u) {
        return;
    }
    let i = workgroup * 256u + lane;
    let lr = bitcast<f32>(p.lr);
    let g = b1[i];
    let beta1 = bitcast<f32>(p.beta1);
    let beta2 = bitcast<f32>(p.beta2);
    let m = beta1 * b2[i] + (1.0 - beta1) * g;
    let v = beta2 * b3[i] + (1.0 - beta2) * g * g;
    b2[i] = m;
    b3[i] = v;
    let step = m * bitcast<f32>(p.correction1) / (sqrt(v * bitcast<f32>(p.correction2)) + bitcast<f32>(p.eps));
    b0[i] = b0[i] * (1.0 - lr * bitcast<f32>(p.decay)) - lr * step;
}
