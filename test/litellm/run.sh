#!/bin/sh
# Imports from a LiteLLM of PyPI: test/litellm-real.test.ts. It is installed (760 MB) and removed, or GATEHOUSE_TEST_LITELLM names
# a Python that has it. Where it cannot be installed, it is skipped.
set -eu
cd "$(dirname "$0")/../.."
if [ -z "${GATEHOUSE_TEST_LITELLM:-}" ]; then
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  # Versions without hashes: the list has 2 KB, not 200, and nothing of it is in the gateway.
  if ! python3 -m venv "$home" || ! timeout --kill-after=10 300 "$home/bin/pip" install --quiet --disable-pip-version-check \
    --no-input --no-compile --no-deps --only-binary :all: -r test/litellm/requirements.txt; then
    echo 'SKIPPED: LiteLLM cannot be had here.'
    exit 0
  fi
  export GATEHOUSE_TEST_LITELLM="$home/bin/python"
fi
timeout --kill-after=10 180 sh scripts/bun.sh test --timeout 120000 ./test/litellm-real.test.ts
