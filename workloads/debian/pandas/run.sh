#!/bin/bash
# python3 with pandas: thousands of allocation sites at its import alone. See ../README.md for the rules all scripts follow.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-2}
# The Python that `setup/python` makes has pandas; another is named by PYTHON.
python=${PYTHON:-$here/../../../build/python/bin/python3}
[ -x "$python" ] || { echo "pandas/run.sh: no $python; run setup/python" >&2; exit 3; }
# shellcheck disable=SC2086
${ISOTHERM_WRAP:-} "$python" "$here/groupby.py" "${ROWS:-2000000}"
