# The project's own Python environment, for tools that are not on PATH. Sourced, from the project's root.
# shellcheck shell=bash

venv=build/venv

# into_venv WHAT PACKAGE...: installs pip packages there; where that fails, says on stderr that WHAT is left out, and why.
into_venv() {
  local what=$1 reason
  shift
  if ! reason=$( (python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "$@") 2>&1); then
    reason=$(tail -n 1 <<<"$reason")
    echo "left out: $what, for pip cannot install $* ($reason)" >&2
    return 77
  fi
}
