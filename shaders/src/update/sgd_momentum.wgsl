// Momentum: v = momentum v + g, x -= lr v, where g includes decay x. Element = 256 workgroup + lane, all arrays alike; no barriers.
struct P {
    groups: u32,
    count: u32,
    lr: u32,
    decay: u32,
    momentum: u32,
}
var<storage, read_write> b0: array<f32>;
var<storage> b1: array<f32>;
var<storage, read_write> b2: array<f32>;
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
    let momentum = bitcast<f32>(p.momentum);
    let lr = bitcast<f32>(p.lr);
    let g = b1[i] + bitcast<f32>(p.decay) * b0[i];
    let v = momentum * b2[i] + g;
    b2[i] = v;
    b0[i] -= lr * v;
}
