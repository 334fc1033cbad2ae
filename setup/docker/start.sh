#!/bin/sh
# Names the engines of this image in PETREL_HOME, which is a volume, then runs a command:
# start.sh <cuda|rocm> <Python with torch> <Python with vLLM> <command>
set -eu
device=$1 torch=$(command -v "$2") vllm=$(command -v "$3")
shift 3
petrel engine install torch --device "$device" --python "$torch" >&2
petrel engine install vllm --device "$device" --python "$vllm" >&2
exec "$@"
