/** Reads from a request what the routes of both APIs need. */
import type { Context } from '../../../http/context.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Batch, BatchApi } from '../../../store/batches/batch-store.ts'
import type { Batches } from '../batches.ts'

/** Headers that apply to each request of a batch. */
const KEPT = ['x-gatehouse-user', 'x-gatehouse-tags', 'x-gatehouse-session', 'x-gatehouse-cache', 'x-gatehouse-timeout']
const KEPT_OF_API: Record<BatchApi, readonly string[]> = {
  openai: [],
  anthropic: ['anthropic-version', 'anthropic-beta'],
}
const TAGS = 'x-gatehouse-tags'
/** By which requests of batches are found in the request log, and routed where a target has such a condition. */
const TAG = 'batch'

export function keptHeaders(context: Context, api: BatchApi): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of [...KEPT, ...KEPT_OF_API[api]]) {
    const value = context.header(name)
    if (value !== null) headers[name] = value
  }
  const tags = headers[TAGS]?.split(',').map((tag) => tag.trim()) ?? []
  headers[TAGS] = [...new Set([...tags.slice(0, 15), TAG])].join(',')
  return headers
}

const DEFAULT_LIMIT = 20

export function readLimit(text: string | null, most: number): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new GatewayError('invalid_value', `"limit" must be an integer from 1 to ${most}.`, { param: 'limit' })
}

type Page = { api: BatchApi; token_id: string; limit: number; after?: string | null; before?: string | null }

/** The newest first. `after` and `before` are ids of batches of the list. Throws invalid_value for others. */
export async function pageOf(batches: Batches, { api, token_id, limit, after, before }: Page) {
  const place = async (name: string, batch_id: string) => {
    try {
      return await batches.find(batch_id, api, token_id)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      throw new GatewayError('invalid_value', `"${name}" must be the id of a batch of this list.`, { param: name })
    }
  }
  const own = { api, token_id, limit: limit + 1 }
  let found: Batch[]
  if (before) {
    const last = await place('before_id', before)
    found = await batches.list({ ...own, order: 'asc', after: last })
  } else {
    const first = after ? await place(api === 'openai' ? 'after' : 'after_id', after) : undefined
    found = await batches.list({ ...own, after: first })
  }
  const page = found.slice(0, limit)
  return { page: before ? page.reverse() : page, has_more: found.length > limit }
}

export const idsOf = <T extends { id: string }>(data: T[]) => ({
  first_id: data.at(0)?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
})
