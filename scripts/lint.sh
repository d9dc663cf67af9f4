#!/usr/bin/env bash
# The checks that compile nothing. usage: scripts/lint.sh [--fix] [format] [python] [docs]   (all three by default)
#   format  clang-format over the C++ and CUDA sources     python  ruff over the Python files
#   docs    quotations in the documentation against the files they come from
# --fix mends instead of complaining. Exits with 77 where a check is left out because its tool is not to be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh

# Another release formats some lines otherwise, so one is fixed: older ones misread C++20 (requires, template lambdas).
clang_format_version=18.1.8
ruff_version=0.15.0

# sources PATTERN...: the files that git tracks or would track, or all of them outside a git checkout.
sources() {
  if [[ -e .git ]] && git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard --deduplicate -- "$@"
  else
    local pattern
    for pattern in "$@"; do
      find . -path ./build -prune -o -type f -name "$pattern" -print
    done
  fi
}

# from_venv TOOL VERSION: prints the path of a tool that pip installs into the project's own environment.
from_venv() {
  local tool=$venv/bin/$1
  [[ -x $tool ]] || into_venv "the $1 check ($1 $2 is not on PATH)" "$1==$2" || return
  echo "$tool"
}

find_clang_format() {
  local candidate
  for candidate in clang-format-${clang_format_version%%.*} clang-format; do
    if command -v "$candidate" >/dev/null && [[ $("$candidate" --version) == *" ${clang_format_version%%.*}."* ]]; then
      echo "$candidate"
      return
    fi
  done
  from_venv clang-format "$clang_format_version"
}

find_ruff() { command -v ruff || from_venv ruff "$ruff_version"; }

check_format() {
  local tool
  tool=$(find_clang_format) || return
  sources '*.hpp' '*.cpp' '*.cu' '*.cuh' | xargs -r "$tool" "$([[ -n $fix ]] && echo -i || echo --dry-run)" --Werror
}

check_python() {
  local tool
  tool=$(find_ruff) || return
  sources '*.py' | xargs -r "$tool" check --quiet ${fix:+--fix}
}

check_docs() { python3 scripts/check_docs.py ${fix:+--write}; }

fix=
if [[ ${1:-} == --fix ]]; then
  fix=yes
  shift
fi
[[ $# -gt 0 ]] || set -- format python docs
worst=0
for part in "$@"; do
  status=0
  "check_$part" || status=$?
  [[ $status -eq 0 || $worst -eq 1 ]] || worst=$([[ $status -eq 77 ]] && echo 77 || echo 1)
done
exit "$worst"
