#!/bin/sh
# Becomes the executable of Gatehouse for this system, which npm installed beside this package.
set -eu

# npm and bun install a link to this file; the package is where the link leads.
self=$0
while [ -h "$self" ]; do
  to=$(readlink "$self")
  case $to in
    /*) self=$to ;;
    *) self=${self%/*}/$to ;;
  esac
done
root=$(cd "${self%/*}/.." && pwd)

for modules in "$root/.." "$root/node_modules"; do
  for command in "$modules"/@gatehouse/linux-*/bin/gatehouse "$modules"/@gatehouse/macos-*/bin/gatehouse; do
    if [ -x "$command" ]; then exec "$command" "$@"; fi
  done
done

echo "gatehouse: there is no executable for this system ($(uname -s) $(uname -m)) beside this package." >&2
echo 'It comes as an optional package for Linux and macOS on x64 and arm64: install without --omit=optional.' >&2
exit 1
