# Sets `bun` to the pinned runtime of the package in `root`; ends with a hint if there is none. For sourcing.

bun=
for candidate in \
  "$root"/node_modules/@oven/*/bin/bun \
  "$root/node_modules/bun/bin/bun.exe" \
  "$root"/../@oven/*/bin/bun \
  "$root/../bun/bin/bun.exe"; do
  # Where install scripts were off, bun.exe is a small text that only says so.
  if [ -x "$candidate" ] && [ -n "$(find -L "$candidate" -size +1000k 2>/dev/null)" ]; then
    bun=$candidate
    break
  fi
done

if [ -z "$bun" ]; then
  wanted=$(sed -n 's/^ *"bun": *"\([0-9.]*\)".*/\1/p' "$root/package.json")
  found=$(bun --version 2>/dev/null || true)
  if [ -n "$found" ] && [ "$found" = "$wanted" ]; then
    bun=bun
  else
    echo "gatehouse: the runtime, Bun $wanted, is not installed${found:+ (bun on the PATH is $found)}." >&2
    echo "Run this once:  cd '$(cd "$root" && pwd)' && npm ci" >&2
    exit 1
  fi
fi
