# Rust's build tool, and by it the crate of rust/egg_simpl: egg (equality saturation), with what
# that needs.
# Found:   cargo on PATH or in ~/.cargo/bin; the crates by cargo, at the versions of Cargo.lock.
# Version: cargo 1.74 or newer, egg 0.11.
# Licence: cargo MIT or Apache-2.0, egg MIT.
find_program(CARGO_PROGRAM cargo HINTS "$ENV{HOME}/.cargo/bin")
if(NOT CARGO_PROGRAM)
  message(FATAL_ERROR
    "cargo was not found. The expression simplifier in rust/egg_simpl is a Rust crate; install a Rust "
    "tool-chain (the distribution's `cargo` package or rustup) and configure again.")
endif()
