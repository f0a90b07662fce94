#!/bin/sh
# test/with-python.sh VARIABLE TEST REQUIREMENT...: runs TEST with packages of PyPI, which are installed for it and removed, or with
# the Python that VARIABLE names. Where they cannot be installed, it is skipped.
set -eu
cd "$(dirname "$0")/.."
variable=$1 test=$2
shift 2
if ! printenv "$variable" >/dev/null; then
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  # Versions without hashes: a list has 2 KB, not 200, and nothing of it is in the gateway.
  if ! python3 -m venv "$home" || ! timeout --kill-after=10 300 "$home/bin/pip" install --quiet --disable-pip-version-check \
    --no-input --no-compile --no-deps --only-binary :all: "$@"; then
    echo "SKIPPED: $test: $* cannot be had here."
    exit 0
  fi
  export "$variable=$home/bin/python"
fi
timeout --kill-after=10 600 sh scripts/bun.sh test --timeout 120000 "./$test"
