#!/usr/bin/env bash
# Prints the folder in which cuobjdump and nvdisasm are, the tools that read machine code: those on PATH or beside nvcc,
# else NVIDIA's packages in the project's own Python environment. Exits with 77 and a reason where there are none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh

from_packages() {
  local folder
  for folder in "$venv"/lib/python*/site-packages/nvidia/cu13/bin; do
    if [[ -x $folder/cuobjdump && -x $folder/nvdisasm ]]; then
      echo "$PWD/$folder"
      return
    fi
  done
  return 1
}

for tool in "$(command -v cuobjdump || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/cuobjdump"; do
  folder=$(dirname "$tool")
  if [[ -x $tool && -x $folder/nvdisasm ]]; then
    echo "$folder"
    exit
  fi
done
from_packages && exit
into_venv "the check of the kernels' machine code" "nvidia-cuda-cuobjdump==13.*" "nvidia-cuda-nvdisasm==13.*"
from_packages
