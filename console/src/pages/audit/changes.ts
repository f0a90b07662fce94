/** Compares the two states of an object that a row of the audit log has. */

export type Change = { member: string; before: string | undefined; after: string | undefined }

/** The members that differ, as text. A state that is no object is one member without a name. */
export function changesOf(before: unknown, after: unknown): Change[] {
  const [old, now] = [membersOf(before), membersOf(after)]
  const members = [...new Set([...old.keys(), ...now.keys()])]
  return members
    .map((member) => ({ member, before: old.get(member), after: now.get(member) }))
    .filter((change) => change.before !== change.after)
}

function membersOf(state: unknown): Map<string, string> {
  if (state === null || state === undefined) return new Map()
  if (typeof state !== 'object' || Array.isArray(state)) return new Map([['', textOf(state)]])
  return new Map(Object.entries(state).map(([name, value]) => [name, textOf(value)]))
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

/** Where the page of an object is, if it has one. */
export function pageOf(object_type: string, object_id: string): string | undefined {
  const path = PAGES[object_type]
  return path === undefined ? undefined : `${path}/${object_id}`
}

const PAGES: Record<string, string> = {
  token: '/tokens',
  project: '/projects',
  task: '/tasks',
  request: '/requests',
  model: '/models',
}
