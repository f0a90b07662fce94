/** Removes members that are `null`, of which client libraries send many. */

type NullRules = {
  /** How deep objects are nested in a body of the protocol. Lists do not count as a level. */
  depth: number
  /** Members whose value is the client's own data, where `null` is a value. */
  ownData: ReadonlySet<string>
  /** A member that may be `null`. */
  nullable?: string
}

/** The function returns the same value if it has none, and copies only what changes. */
export function nullRemover({ depth: maximum, ownData, nullable }: NullRules) {
  function cleaned(value: unknown, depth: number): unknown {
    if (Array.isArray(value)) return cleanedList(value, depth)
    if (typeof value !== 'object' || value === null || depth < 0) return value
    let copy: Record<string, unknown> | undefined
    for (const [name, member] of Object.entries(value)) {
      if (member === null ? name === nullable : ownData.has(name)) continue
      const inner = cleaned(member, depth - 1)
      if (inner === member && member !== null) continue
      const changed: Record<string, unknown> = copy ?? { ...(value as Record<string, unknown>) }
      if (member === null) delete changed[name]
      else changed[name] = inner
      copy = changed
    }
    return copy ?? value
  }

  function cleanedList(list: unknown[], depth: number): unknown[] {
    let copy: unknown[] | undefined
    for (const [index, item] of list.entries()) {
      const inner = cleaned(item, depth)
      if (inner === item) continue
      copy ??= [...list]
      copy[index] = inner
    }
    return copy ?? list
  }

  return <T>(value: T): T => cleaned(value, maximum) as T
}
