#!/bin/sh
# Print a Python that can run Rung: the given one, or the first suitable one on PATH. Explain what is missing otherwise.
suits='import sys; sys.exit(sys.version_info < (3, 11))'
why=""
for python in ${1:-python3 python3.14 python3.13 python3.12 python3.11}; do
  version=$("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null) || continue
  if ! "$python" -c "$suits" 2>/dev/null; then
    why="$why $python is Python $version."
  elif command -v uv >/dev/null || "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$python"
    exit 0
  else
    why="$why $python ($version) has no venv module; on Debian and Ubuntu, install python3-venv."
  fi
done
if [ -n "$1" ]; then
  why="${why:- $1 cannot be run.}"
else
  why="${why:- There is no python3 on PATH.}"
fi
echo "make: Rung needs Python 3.11 or newer.$why Name another one with PYTHON=, for example: make run PYTHON=/opt/python3.13/bin/python3" >&2
exit 1
