#!/bin/bash
# Runs the clients of Go, Java and Rust, or those that are named (`go`, `java`, `rust`), against a gateway with the sandbox.
# A suite is skipped if its toolchain is not installed or its dependencies cannot be downloaded.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'if [ -n "${gateway:-}" ]; then kill "$gateway" 2>/dev/null || true; wait "$gateway" 2>/dev/null || true; fi; rm -rf "$work"' EXIT

# Of each download and each suite: on a slow machine they compile for minutes.
bounded() { timeout --kill-after=10 600 "$@"; }

missing_tool() {
  case $1 in
    go) tools=go ;;
    java) tools='javac mvn' ;;
    rust) tools='cargo rustc cc' ;;
    *) echo "usage: test/clients/run.sh [go] [java] [rust]: there is no \"$1\"" >&2; exit 2 ;;
  esac
  for tool in $tools; do
    if ! command -v "$tool" >/dev/null; then echo "$tool"; return; fi
  done
}

# All that the suite needs to run offline, in the versions of go.sum, pom.xml and Cargo.lock.
download() {
  cd "$here/$1"
  case $1 in
    go) bounded go mod download ;;
    # Skipped tests are not compiled, but what compiles and runs them is downloaded.
    java) bounded mvn --batch-mode --quiet test -Dmaven.test.skip=true ;;
    rust) bounded cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')" ;;
  esac
}

run_suite() {
  export NO_PROXY='*' # for this only: a download may need a proxy
  cd "$here/$1"
  case $1 in
    go) GOPROXY=off bounded go test -count=1 ./... ;;
    java) bounded mvn --batch-mode --offline --no-transfer-progress test ;;
    rust) bounded cargo test --locked --offline --test openai ;;
  esac
}

start_gateway() {
  if [ -n "${gateway:-}" ]; then return; fi
  export GATEHOUSE_TOKEN=gh-clients-test-0123456789abcdef
  printf 'sandbox: true\n' > "$work/gatehouse.yaml"
  GATEHOUSE_BOOTSTRAP_TOKEN=$GATEHOUSE_TOKEN GATEHOUSE_DISCOVER=off GATEHOUSE_LOG=error "$root/bin/gatehouse" serve \
    --config "$work/gatehouse.yaml" --port 0 --data-dir "$work/data" --json > "$work/start" 2> "$work/log" &
  gateway=$!
  # A minute: where the machine is busy a start takes 10 s.
  for _ in $(seq 600); do
    if [ -s "$work/start" ] || ! kill -0 "$gateway" 2>/dev/null; then break; fi
    sleep 0.1
  done
  GATEHOUSE_ORIGIN=$(grep -o 'http://[0-9.:]*' "$work/start" | head -n 1) || { cat "$work/log" >&2; exit 1; }
  export GATEHOUSE_ORIGIN
}

failed=()
if [ $# = 0 ]; then set -- go java rust; fi
for language in "$@"; do
  missing=$(missing_tool "$language")
  if [ -n "$missing" ]; then
    echo "$language: skipped: $missing is not installed"
  elif ! (download "$language") > "$work/download" 2>&1; then
    tail -n 5 "$work/download"
    echo "$language: skipped: dependencies could not be downloaded"
  else
    start_gateway
    if (run_suite "$language"); then echo "$language: passed"; else failed+=("$language"); fi
  fi
done
for language in "${failed[@]+"${failed[@]}"}"; do echo "$language: FAILED"; done
[ ${#failed[@]} = 0 ]
