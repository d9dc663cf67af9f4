# Functions that ./demo and ./test share: the packages they need, and steps that are timed. Sourced, not run.
# shellcheck shell=bash

least_gcc=12
least_cmake=3.22
logs=build/logs

say() { printf '==> %s\n' "$*"; }

# at_least VERSION LEAST
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# ---- what is needed. A check looks for the tool or the header itself, so that any installation of it will do.

# Sets and exports CXX: the user's choice, else g++, else the first g++ that is new enough.
have_compiler() {
  local candidate
  for candidate in ${CXX:-g++ g++-15 g++-14 g++-13 g++-12}; do
    if command -v "$candidate" >/dev/null && is_new_compiler "$candidate"; then
      export CXX=$candidate
      return 0
    fi
  done
  return 1
}

is_new_compiler() { at_least "$("$1" -dumpversion)" "$least_gcc" || "$1" --version | grep -q clang; }

have_cmake() {
  command -v cmake >/dev/null && at_least "$(cmake --version | sed -n '1s/[^0-9]*//p')" "$least_cmake"
}

# have_header NAME...: one of them is on the compiler's search path.
have_header() {
  local name
  for name in "$@"; do
    if [[ -z ${CXX:-} ]]; then
      [[ -e /usr/include/$name ]] && return 0
    elif printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$name" | "$CXX" -E -x c++ - >/dev/null 2>&1; then
      return 0
    fi
  done
  return 1
}

# Its own header: cblas.h may be another BLAS's. cmake/scandsl-openblas.cmake looks in the same folders.
have_openblas() {
  have_header openblas_config.h openblas-openmp/openblas_config.h openblas-pthread/openblas_config.h \
    openblas/openblas_config.h
}

have_venv() { python3 -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 9)' 2>/dev/null; }

# Where CMakeLists.txt looks for it, too.
have_nvcc() { command -v nvcc >/dev/null || [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]; }

# Sets gpu_architecture, as nvcc numbers it: that of the first GPU.
have_gpu() {
  gpu_architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
  [[ $gpu_architecture =~ ^[0-9]+$ ]]
}

# need PACKAGE NAME CHECK...: notes the package and what the reader calls it where the check fails.
need() {
  local package=$1 name=$2
  shift 2
  if ! "$@"; then
    missing_packages+=("$package")
    missing_names+=("$name")
  fi
}

demo_needs() {
  need g++ "g++ >= $least_gcc" have_compiler
  need cmake "cmake >= $least_cmake" have_cmake
  need ninja-build "ninja" command -v ninja
  need libboost-dev "Boost >= 1.74 (header boost/hana.hpp)" have_header boost/hana.hpp
  need libopenblas-openmp-dev "OpenBLAS (header openblas_config.h)" have_openblas
  need libxsimd-dev "xsimd >= 8 (header xsimd/xsimd.hpp)" have_header xsimd/xsimd.hpp
}

test_needs() {
  demo_needs
  need catch2 "Catch2 >= 2.13 (header catch2/catch.hpp or catch2/catch_all.hpp)" \
    have_header catch2/catch.hpp catch2/catch_all.hpp
  need libbenchmark-dev "Google Benchmark (header benchmark/benchmark.h)" have_header benchmark/benchmark.h
  need valgrind "valgrind (header valgrind/callgrind.h)" have_header valgrind/callgrind.h
  need clang-format "clang-format" command -v clang-format
  need python3 "python3 >= 3.9" command -v python3
  need python3-venv "python3 with venv" have_venv
}

# ensure NEEDS: installs what the function NEEDS finds missing, or says what is missing and exits.
ensure() {
  find_missing "$1"
  [[ ${#missing_packages[@]} -eq 0 ]] && return
  local names
  names=$(printf '%s; ' "${missing_names[@]}")
  names=${names%; }
  if ! command -v apt-get >/dev/null; then
    printf 'missing: %s\nThere is no apt-get here. Install these by your own means and run this again.\n' "$names" >&2
    exit 1
  fi
  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    if ! sudo -n true 2>/dev/null; then
      printf 'missing: %s\nRun this line, then this script again:\n' "$names" >&2
      printf 'sudo apt-get install -y %s\n' "${missing_packages[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  say "missing: $names"
  # A package list that cannot be refreshed may still be good enough to install from.
  step "apt-get update" "${as_root[@]}" apt-get update || true
  step "apt-get install ${missing_packages[*]}" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing_packages[@]}"
  find_missing "$1"
  if [[ ${#missing_names[@]} -gt 0 ]]; then
    printf 'still missing after installing: %s\n' "$(printf '%s; ' "${missing_names[@]}")" >&2
    exit 1
  fi
}

find_missing() {
  missing_packages=()
  missing_names=()
  "$1" >/dev/null
}

# ---- steps

# step NAME COMMAND...: runs the command quietly into a log, says how long it took, shows the log's end on failure.
step() {
  local name=$1 start=$SECONDS log
  shift
  mkdir -p "$logs"
  log=$logs/$(tr -cs 'a-zA-Z0-9\n' '-' <<<"$name" | cut -c1-60).log
  printf '==> %s ... ' "$name"
  if "$@" >"$log" 2>&1; then
    printf '%d s\n' $((SECONDS - start))
  else
    printf 'FAILED after %d s; the end of %s:\n' $((SECONDS - start)) "$log"
    tail -n 60 "$log"
    return 1
  fi
}

# One job a core, and 2 GB of memory for each: template-heavy sources need most of that.
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 2000000))
  memory=$((memory > 1 ? memory : 1))
  echo $((cores < memory ? cores : memory))
}
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(job_count)}
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$CMAKE_BUILD_PARALLEL_LEVEL}
