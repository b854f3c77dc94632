//! Loops, constants and sharing, as graphs show them.

use expect_test::expect;

use super::clean;

fn blocks(depth: usize) -> String {
    format!(
        "layer Mlp<dim, ffn> {{
            gate: Linear<dim, ffn, bias = false>,
            up: Linear<dim, ffn, bias = false>,
            down: Linear<ffn, dim, bias = false>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] {{ down(silu(gate(x)) * up(x)) }}
        }}
        layer Block<dim, ffn> {{
            norm: RmsNorm<dim>,
            mlp: Mlp<dim, ffn>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] {{ x + mlp(norm(x)) }}
        }}
        pub model Net<dim = 8, depth = {depth}, batch in 1..=64> {{
            blocks: [Block<dim, 2 * dim>; depth],
            norm: LayerNorm<dim>,
            pub fn run(x: f32[batch, dim]) -> f32[batch, dim] {{
                let mut x = x;
                for block in blocks {{ x = block(x); }}
                norm(x)
            }}
        }}"
    )
}

#[test]
fn a_loop_over_layers_is_one_repeat() {
    let resolved = clean(&blocks(3));
    expect![[r#"
        %0: f32[batch, 8] = read x()   # 
        %25: f32[3, 8] = read blocks.{}.norm.weight()   # blocks.norm
        %28: f32[3, 16, 8] = read blocks.{}.mlp.gate.weight()   # blocks.mlp.gate
        %36: f32[3, 16, 8] = read blocks.{}.mlp.up.weight()   # blocks.mlp.up
        %41: f32[3, 8, 16] = read blocks.{}.mlp.down.weight()   # blocks.mlp.down
        %46: f32[batch, 8] = repeat 3 up(%0, %25, %28, %36, %41)   # 
          given %1: u32[], %2: f32[batch, 8], %26: f32[8], %29: f32[16, 8], %37: f32[16, 8], %42: f32[8, 16]
          %23: f32[batch, 8], %24: f32[batch, 1] = rms_norm(%2)   # blocks.norm
          %27: f32[batch, 8] = * Bin(Mul, 0, 1)(%23, %26)   # blocks.norm
          %30: f32[8, 16] = transpose(%29)   # blocks.mlp.gate
          %31: f32[batch, 16] = contract ij,jk->ik(%27, %30)   # blocks.mlp.gate
          %35: f32[batch, 16] = silu(%31)   # blocks.mlp
          %38: f32[8, 16] = transpose(%37)   # blocks.mlp.up
          %39: f32[batch, 16] = contract ij,jk->ik(%27, %38)   # blocks.mlp.up
          %40: f32[batch, 16] = * Bin(Mul, 0, 1)(%35, %39)   # blocks.mlp
          %43: f32[16, 8] = transpose(%42)   # blocks.mlp.down
          %44: f32[batch, 8] = contract ij,jk->ik(%40, %43)   # blocks.mlp.down
          %45: f32[batch, 8] = + Bin(Add, 0, 1)(%2, %44)   # blocks
          give %45
        %75: f32[batch, 8], %76: f32[batch, 1] = layer_norm(%46)   # norm
        %77: f32[8] = read norm.weight()   # norm
        %78: f32[batch, 8] = * Bin(Mul, 0, 1)(%75, %77)   # norm
        %79: f32[8] = read norm.bias()   # norm
        %80: f32[batch, 8] = + Bin(Add, 0, 1)(%78, %79)   # norm
        output run = %80
    "#]]
    .assert_eq(&resolved.entries[0].graph.to_string());
}
