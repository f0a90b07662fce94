/** The texts of a request or an answer, as guards see them. */

/** One text in its place. A guard that changes it sets it anew. */
export type GuardedText = {
  text: string
  /** Whether it is JSON, so that characters in its strings may be escaped. Absent: it is plain text. */
  readonly is_json?: boolean
}

/** The string at a member of an object or list, which is changed in place. */
export function textAt<Key extends PropertyKey>(
  holder: { [name in Key]?: unknown },
  key: Key,
  is_json?: true,
): GuardedText[] {
  if (typeof holder[key] !== 'string' || holder[key] === '') return []
  return [
    {
      get text() {
        return holder[key] as string
      },
      set text(text: string) {
        holder[key] = text
      },
      ...(is_json && { is_json }),
    },
  ]
}

/** Any value at a member, as the JSON that it is sent as. */
export function jsonAt<Key extends PropertyKey>(holder: { [name in Key]?: unknown }, key: Key): GuardedText[] {
  const value = holder[key]
  if (typeof value === 'string') return textAt(holder, key)
  if (typeof value !== 'object' || value === null) return []
  return [
    {
      get text() {
        return JSON.stringify(holder[key])
      },
      set text(text: string) {
        holder[key] = JSON.parse(text)
      },
      is_json: true,
    },
  ]
}
