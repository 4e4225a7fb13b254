#!/bin/bash
# python3 with numpy. See ../README.md for the rules all scripts follow.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-2}
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "numpy/run.sh: numpy is missing; install python3-numpy" >&2; exit 3; }
# shellcheck disable=SC2086
${ISOTHERM_WRAP:-} /usr/bin/python3 "$here/arrays.py" "${MEGABYTES:-256}"
