/** Finds the model that a client probably meant by an unknown name. */
import { nearest } from '../kit/nearest.ts'

/** No vendor has longer names. */
const MAX_CHARACTERS = 100
/** 2,000 ids that all resemble the name take 15 ms, and a client may send unknown names without end. */
const MAX_COMPARED = 1_000

/**
 * The id that is spelt like the name, or whose part after the first slash is, if at most a quarter of the letters and at
 * most three differ; otherwise the first that continues the name, as a version does.
 */
export function nearModel(name: string, ids: readonly string[]): string | undefined {
  if (name.length < 3 || name.length > MAX_CHARACTERS) return undefined
  const compared = new Map<string, string>()
  for (const id of ids.slice(0, MAX_COMPARED)) {
    compared.set(id, id)
    const short = id.slice(id.indexOf('/') + 1)
    if (!compared.has(short)) compared.set(short, id)
  }
  const names = [...compared.keys()]
  const bound = Math.max(1, Math.min(3, Math.floor(name.length / 4)))
  const lower = name.toLowerCase()
  const found = nearest(name, names, bound) ?? names.find((one) => one.toLowerCase().startsWith(`${lower}-`))
  return found === undefined ? undefined : compared.get(found)
}
