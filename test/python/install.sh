#!/bin/sh
# Installs what requirements.txt pins into .venv beside it, in this directory or the one that is named: the Python clients of
# the tests and schemathesis (250 MB), or in test/agents the coding agent aider (570 MB). Does nothing if all is there.
set -eu
cd "${1:-$(dirname "$0")}"

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "test/python/install.sh: needs Python 3.11 or newer: there is no \"$python\" that is. Install it, or name another with PYTHON=..." >&2
  exit 1
fi
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  echo "test/python/install.sh: \"$python\" cannot make virtual environments. On Debian: apt-get install python3-venv" >&2
  exit 1
fi

if cmp -s requirements.txt .venv/installed.txt; then exit 0; fi
rm -rf .venv
"$python" -m venv .venv
# Wheels only: a source package would need a compiler. Without dependencies, since the file has them all: with them, pip takes the
# newest release of what is required with an extra, which has no hash there.
.venv/bin/pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps --only-binary :all: --require-hashes -r requirements.txt
cp requirements.txt .venv/installed.txt
