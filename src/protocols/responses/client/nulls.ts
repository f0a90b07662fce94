/** Removes members that are `null`, of which client libraries send many. */

/**
 * A body holds items, which hold parts, which hold data; a tool's location is as deep. Lists do not count as a level.
 */
const DEPTH = 4

/** Members whose value is the client's own data, where `null` is a value. */
const OWN_DATA = new Set(['parameters', 'schema', 'metadata'])

/** Returns the same object if it has none. Copies only what changes. */
export function withoutNulls<T>(value: T, depth = DEPTH): T {
  if (Array.isArray(value)) {
    let list: unknown[] | undefined
    for (const [index, item] of value.entries()) {
      const cleaned = withoutNulls(item, depth)
      if (cleaned === item) continue
      list ??= [...value]
      list[index] = cleaned
    }
    return (list ?? value) as T
  }
  if (typeof value !== 'object' || value === null || depth < 0) return value
  let copy: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    const cleaned = OWN_DATA.has(name) || member === null ? member : withoutNulls(member, depth - 1)
    if (cleaned === member && member !== null) continue
    const changed: Record<string, unknown> = copy ?? { ...(value as Record<string, unknown>) }
    if (member === null) delete changed[name]
    else changed[name] = cleaned
    copy = changed
  }
  return (copy ?? value) as T
}
