//! The procedural macros of meganeura: tokens in, tokens or errors out. The compiler is the crate `meganeura-core`.

use meganeura_core::pipeline;
use meganeura_core::watch::Watch;
use proc_macro::TokenStream;

/// What `meganeura::model!` expands to: `[$crate]`, then the items.
#[proc_macro]
pub fn __model(tokens: TokenStream) -> TokenStream {
    pipeline::expand(tokens.into()).into()
}

/// What the chain of one item ends in: the item, then what its imports brought.
#[proc_macro]
pub fn __item(tokens: TokenStream) -> TokenStream {
    // Read here and nowhere else; dumps go to the terminal and change no output.
    let wanted = std::env::var("MEGANEURA_DUMP").unwrap_or_default();
    let mut watch = Watch::new(&wanted);
    let expanded = pipeline::expand_item(tokens.into(), &mut watch);
    watch.texts.iter().for_each(|text| show(text));
    expanded.into()
}

#[allow(clippy::print_stderr)]
fn show(dump: &str) {
    eprintln!("{dump}");
}
