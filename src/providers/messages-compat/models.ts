/** The vendor's list of its models, which comes in pages. */
import { matchesGlob } from '../../kit/glob.ts'
import { isRecord } from '../../kit/json.ts'
import { namedText } from '../answer-words.ts'
import type { DiscoveredModel } from '../provider.ts'

export type ModelPage = {
  models: DiscoveredModel[] /** After which model the next page begins. */
  next: string | undefined
}

/** undefined for something that is no such list. */
export function readModelPage(payload: unknown): ModelPage | undefined {
  if (!isRecord(payload) || !Array.isArray(payload.data)) return undefined
  const models = payload.data.filter(isRecord).flatMap(({ id, created_at }) => {
    const model = namedText(id)
    if (model === undefined) return []
    const created = typeof created_at === 'string' ? Math.floor(Date.parse(created_at) / 1000) : Number.NaN
    return [created > 0 ? { model, created } : { model }]
  })
  const next = payload.has_more === true ? (namedText(payload.last_id) ?? models.at(-1)?.model) : undefined
  return { models, next }
}

/** Those that are wanted, each once, by name. */
export function wantedModels(
  models: DiscoveredModel[],
  { include, exclude }: { include: string[]; exclude: string[] },
) {
  const byName = new Map(models.map((one) => [one.model, one]))
  const fits = (globs: string[], name: string) => globs.some((glob) => matchesGlob(glob, name.toLowerCase()))
  return [...byName.values()]
    .filter(({ model }) => fits(include, model) && !fits(exclude, model))
    .sort((left, right) => (left.model < right.model ? -1 : 1))
}
