/** The size of a value as JSON text, without making the text. */

/**
 * Bytes, except that escaped characters count as one. The time depends on the number of values: the bytes of a string are
 * counted natively.
 */
export function jsonSize(value: unknown): number {
  let bytes = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next === 'string') bytes += Buffer.byteLength(next) + 2
    else if (next === null || typeof next !== 'object') bytes += String(next).length
    else if (Array.isArray(next)) {
      bytes += 1 + Math.max(1, next.length)
      for (const item of next) open.push(item)
    } else {
      let members = 0
      for (const name in next) {
        const member = (next as Record<string, unknown>)[name]
        if (member === undefined) continue
        members++
        bytes += Buffer.byteLength(name) + 3
        open.push(member)
      }
      bytes += 1 + Math.max(1, members)
    }
  }
  return bytes
}
