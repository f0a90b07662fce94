/** The vendor's list of its models, which comes in pages. */
import { isRecord } from '../../kit/json.ts'
import { namedText } from '../../protocols/upstream.ts'
import type { ModelPage } from '../model-list.ts'

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
