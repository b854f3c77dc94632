//! What the compiler and the runtime share.
