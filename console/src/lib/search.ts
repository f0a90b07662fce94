/** The query of an address as plain text values: what a list shows is in its address. */
export type Search = Record<string, string>

export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text))
}

export function stringifySearch(search: Record<string, unknown>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(search))
    if (value !== undefined && value !== null && value !== '') query.set(name, String(value))
  return query.size === 0 ? '' : `?${query}`
}

/** How one value of the address is read; what is not valid counts as the default. */
export type Reader<Value> = { read(text: string | undefined): Value; write(value: Value): string | undefined }

export const text = (fallback = ''): Reader<string> => ({
  read: (value) => value ?? fallback,
  write: (value) => (value === fallback ? undefined : value),
})

export const choice = <const Values extends readonly string[]>(
  values: Values,
  fallback: Values[number],
): Reader<Values[number]> => ({
  read: (value) => (value !== undefined && values.includes(value) ? value : fallback),
  write: (value) => (value === fallback ? undefined : value),
})

export const flag = (): Reader<boolean> => ({
  read: (value) => value === 'yes',
  write: (value) => (value ? 'yes' : undefined),
})

export const integer = (fallback: number): Reader<number> => ({
  read: (value) => (value !== undefined && /^\d{1,12}$/.test(value) ? Number(value) : fallback),
  write: (value) => (value === fallback ? undefined : String(value)),
})

/** Several values, separated by commas. */
export const several = (): Reader<string[]> => ({
  read: (value) => value?.split(',').filter(Boolean) ?? [],
  write: (value) => (value.length === 0 ? undefined : value.join(',')),
})
