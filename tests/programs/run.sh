#!/bin/sh
# tests/programs/run.sh LIBRARY [--isotherm FILE] [--set short|long|redis] [--mode NAME] [--case NAME] [--verbose]
exec /usr/bin/python3 "$(dirname "$0")/run.py" "$@"
