/** A table in which many names have the same value: each value with its names, separated by spaces. */
export const byName = <Value>(...rows: (readonly [value: Value, names: string])[]): Record<string, Value> =>
  Object.fromEntries(rows.flatMap(([value, names]) => names.split(' ').map((name) => [name, value])))
