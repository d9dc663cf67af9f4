#!/usr/bin/env bash
# Builds and runs the CPU benchmarks on an otherwise idle machine, some minutes, 2 GB of memory.
# usage: scripts/bench.sh [NAME] [Google Benchmark's options]   writes bench/results/cpu-NAME.json (default: the commit)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh

bench_needs() {
  demo_needs
  need libbenchmark-dev "Google Benchmark (header benchmark/benchmark.h)" have_header benchmark/benchmark.h
}

SCANDSL_COMMIT=$(git describe --always --dirty --abbrev=12 --exclude='*')
export SCANDSL_COMMIT
name=$SCANDSL_COMMIT
if [[ $# -gt 0 && $1 != -* ]]; then
  name=$1
  shift
fi
ensure bench_needs
step "bench: configure" cmake --preset bench
step "bench: build" cmake --build --preset bench --target scandsl_bench
mkdir -p bench/results
exec build/bench/bench/scandsl_bench --out="bench/results/cpu-$name.json" "$@"
