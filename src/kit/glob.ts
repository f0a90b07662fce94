/** Glob patterns over names: `*` matches any characters including `/`; everything else is literal. */

export function matchesGlob(pattern: string, name: string): boolean {
  const parts = pattern.split('*')
  if (parts.length === 1) return pattern === name
  const first = parts[0] ?? ''
  const last = parts[parts.length - 1] ?? ''
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false
  let at = first.length
  const end = name.length - last.length
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at)
    if (found === -1 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** The prefix before the first `*` decides; all other literal characters break ties. Larger is more specific. */
export function globSpecificity(pattern: string): number {
  const prefix = pattern.split('*', 1)[0] ?? ''
  return prefix.length * 10_000 + pattern.replaceAll('*', '').length
}

export function globsOverlap(left: string, right: string): boolean {
  // reachable[j]: the first i characters of `left` and the first j of `right` can match one name.
  let row: boolean[] = []
  for (let i = 0; i <= left.length; i++) {
    const next: boolean[] = []
    for (let j = 0; j <= right.length; j++) {
      const above = row[j] === true && (left[i - 1] === '*' || right[j - 1] === '*')
      const before = next[j - 1] === true && (left[i - 1] === '*' || right[j - 1] === '*')
      const diagonal =
        row[j - 1] === true && (left[i - 1] === right[j - 1] || left[i - 1] === '*' || right[j - 1] === '*')
      next[j] = (i === 0 && j === 0) || above || before || diagonal
    }
    row = next
  }
  return row[right.length] === true
}
