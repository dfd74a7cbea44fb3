# Rust's build tool, and by it the crates of rust/egg_simpl: egg (equality saturation) and rayon
# (parallel loops), with what those need.
# Found:   cargo on PATH or in ~/.cargo/bin; the crates by cargo, at the versions of Cargo.lock.
# Version: cargo 1.74 or newer, egg 0.11, rayon 1.
# Licence: cargo MIT or Apache-2.0, egg MIT, rayon MIT or Apache-2.0.
find_program(CARGO_PROGRAM cargo HINTS "$ENV{HOME}/.cargo/bin")
if(NOT CARGO_PROGRAM)
  message(FATAL_ERROR
    "cargo was not found. The expression simplifier in rust/egg_simpl is a Rust crate; install a Rust "
    "tool-chain (the distribution's `cargo` package or rustup) and configure again.")
endif()
