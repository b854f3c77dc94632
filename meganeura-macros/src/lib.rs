//! The procedural macros of meganeura: tokens in, tokens or errors out. The compiler is the crate `meganeura-core`.

use proc_macro::TokenStream;

/// What `meganeura::model!` expands to: `[$crate]`, then the items.
#[proc_macro]
pub fn __model(tokens: TokenStream) -> TokenStream {
    // Read here and nowhere else; dumps go to the terminal and change no output.
    let wanted = std::env::var("MEGANEURA_DUMP").unwrap_or_default();
    let expansion = meganeura_core::pipeline::expand(tokens.into(), &wanted);
    for dump in &expansion.dumps {
        show(dump);
    }
    expansion.tokens.into()
}

#[allow(clippy::print_stderr)]
fn show(dump: &str) {
    eprintln!("{dump}");
}
