/** Compares the path of a setting with patterns such as `providers.*.key`, and finds the values at such places. */
import { isRecord } from '../../kit/json.ts'

/** `*` is any one step, and `**` at the end one or more. */
export const isListed = (patterns: readonly string[], path: readonly (string | number)[]): boolean =>
  patterns.some((pattern) => matches(pattern.split('.'), path))

function matches(steps: readonly string[], path: readonly (string | number)[]): boolean {
  const isOpen = steps.at(-1) === '**'
  if (isOpen ? path.length < steps.length : path.length !== steps.length) return false
  return steps.every((step, index) => step === '*' || step === '**' || step === String(path[index]))
}

/** The value at a path; undefined: there is none. */
export const valueAt = (root: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step) ? value[step as never] : undefined,
    root,
  )

type Placed<Value> = { path: (string | number)[]; value: Value }

/** Each value at a place of this pattern, in the order of the file. Undefined ones, which failed the schema, are left out. */
export function placesOf<Value = unknown>(root: unknown, pattern: string): Placed<Value>[] {
  let places: Placed<unknown>[] = [{ path: [], value: root }]
  for (const step of pattern.split('.'))
    places = places.flatMap(({ path, value }) =>
      membersOf(value)
        .filter(([name]) => step === '*' || step === name)
        .map(([name, member]) => ({ path: [...path, name], value: member })),
    )
  return places.filter(({ value }) => value !== undefined) as Placed<Value>[]
}

function membersOf(value: unknown): [string | number, unknown][] {
  if (Array.isArray(value)) return [...value.entries()]
  return isRecord(value) ? Object.entries(value) : []
}
