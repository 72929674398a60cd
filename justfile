# Names for the daily commands. Nobody needs `just`: each recipe is the cargo command to type instead.

# The console on the default profile
run *words:
    cargo run --release -- {{words}}

# All tests
test:
    cargo test --workspace

# What CI says first
lint:
    cargo fmt --all --check && cargo clippy --workspace --all-targets --locked -- -D warnings

# Benchmarks beside their peers; `just bench dispatch` for one area
bench *areas:
    cargo bench -p pinwheel-bench -- {{areas}}

# One edge, or all of them, weakened under loom
weaken *edges:
    .ci/weaken {{edges}}

# A seed range of the simulation
seeds range="0..1000":
    cargo run --release -- sim --seeds {{range}}

# Documentation with private items
doc:
    cargo doc --workspace --no-deps --document-private-items --open

# Everything that CI runs
ci:
    .ci/run
