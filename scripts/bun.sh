#!/bin/sh
# Runs the pinned runtime with the arguments given: npm's own link to it does not work where install scripts are off.
set -eu
root=$(dirname "$0")/..
. "$root/scripts/find-bun.sh"
: "${BUN_CONFIG_MAX_HTTP_REQUESTS:=65535}"
export BUN_CONFIG_MAX_HTTP_REQUESTS
exec "$bun" "$@"
