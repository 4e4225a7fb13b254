#!/bin/sh
# tests/hostile/run.sh LIBRARY [--isotherm FILE] [--mode NAME] [--case NAME] [--verbose]
exec /usr/bin/python3 "$(dirname "$0")/run.py" "$@"
