#!/bin/bash
# Holds the OpenAPI document of a running gateway against linters (`lint`), a generator of types (`types`) or schemathesis
# (`requests`, of `api` or `admin` only, with further options for it), which sends some thousand requests and compares the
# responses with the document.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'if [ -n "${gateway:-}" ]; then kill "$gateway" 2>/dev/null || true; wait "$gateway" 2>/dev/null || true; fi; rm -rf "$work"' EXIT

export GATEHOUSE_BOOTSTRAP_TOKEN=gh-openapi-check-0123456789abcdef
export GATEHOUSE_ADMIN_TOKEN=gh-openapi-owner-0123456789abcdef
printf 'sandbox: true\nadmin: { requests_per_minute: 1000000 }\n' > "$work/gatehouse.yaml"
GATEHOUSE_DISCOVER=off GATEHOUSE_LOG=error "$root/bin/gatehouse" serve --config "$work/gatehouse.yaml" \
  --port 0 --data-dir "$work/data" --json > "$work/start" 2> "$work/log" &
gateway=$!
# A minute: where the machine is busy a start takes 10 s.
for _ in $(seq 600); do
  if [ -s "$work/start" ] || ! kill -0 "$gateway" 2>/dev/null; then break; fi
  sleep 0.1
done
address=$(grep -o 'http://[0-9.:]*' "$work/start" | head -n 1) || { cat "$work/log" >&2; exit 1; }
curl -sf "$address/openapi.json" -o "$work/openapi.json"

bin=$here/node_modules/.bin
case ${1:-} in
  lint)
    # A warning is an error: redocly has no option for it, so its summary is read.
    REDOCLY_TELEMETRY=off "$bin/redocly" lint --config "$here/redocly.yaml" --format json "$work/openapi.json" > "$work/redocly.json" || true
    node -e '
      const { totals, problems } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
      for (const { ruleId, message, location } of problems) console.error(`${ruleId}: ${message} ${location?.[0]?.pointer ?? ""}`)
      process.exit(totals.errors + totals.warnings === 0 ? 0 : 1)' "$work/redocly.json"
    "$bin/spectral" lint --ruleset "$here/spectral.yaml" --fail-severity warn "$work/openapi.json"
    ;;
  types)
    "$bin/openapi-typescript" "$work/openapi.json" -o "$work/openapi.ts"
    cp "$here/types-probe.ts" "$work/"
    ln -s "$here/node_modules" "$work/node_modules" # for openapi-fetch
    "$root/node_modules/.bin/tsc" --ignoreConfig --noEmit --strict --target esnext --module esnext --moduleResolution bundler \
      --allowImportingTsExtensions --types '' "$work/types-probe.ts"
    ;;
  requests)
    # It writes beside where it runs, and looks for its hooks there.
    cp "$here/schemathesis_hooks.py" "$work/"
    cd "$work"
    # Each API with its token; the document has no links between the operations of the admin API, by which scenarios would go; a stream of live events does not end. 15 minutes: far above its 2 on an idle machine.
    check() {
      GATEHOUSE_URL=$address timeout --kill-after=10 900 "$root/test/python/.venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$address/openapi.json" \
        --header "Authorization: Bearer $1" --no-color "${@:2}" || { tail -n 40 "$work/log" >&2; exit 1; }
    }
    if [ "${2:-api}" != admin ]; then check "$GATEHOUSE_BOOTSTRAP_TOKEN" --exclude-path-regex '^/admin/' "${@:3}"; fi
    if [ "${2:-admin}" != api ]; then check "$GATEHOUSE_ADMIN_TOKEN" --include-path-regex '^/admin/' --exclude-path /admin/v1/events --phases examples,coverage,fuzzing "${@:3}"; fi
    ;;
  *)
    echo 'usage: test/openapi-tools/check.sh lint | types | requests [api | admin [options]]' >&2
    exit 2
    ;;
esac
