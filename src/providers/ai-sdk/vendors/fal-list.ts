/** fal's list of requests, for videos and for 3D models: an API of its own, at another host than the queue. */
import { isRecord, recordsIn } from '../../../kit/json.ts'
import type { Json } from '../../../spec/task.ts'
import { type ListedOrder, secondsOf } from '../../orders/order-list.ts'

const PLATFORM_URL = 'https://api.fal.ai'

/** https://fal.ai/docs/platform-apis/v1/models/requests/by-endpoint */
export const FAL_LIST = {
  // Nothing is documented of how complete it is.
  absent: 'unknown',
  // It is sorted by the time at which requests ended, so one that still runs may not be in it.
  listed_seconds: 3600,
} as const

/** Behind a configured base URL the list is expected there too: the key may be one of that host only. */
export const falListUrl = ({
  model,
  since,
  base = PLATFORM_URL,
}: {
  model: string
  since: number
  base?: string | undefined
}): string => {
  const query = { endpoint_id: model, start: new Date(since * 1000).toISOString(), limit: '100', expand: 'payloads' }
  return `${base}/v1/models/requests/by-endpoint?${new URLSearchParams(query)}`
}

export function readFalList(
  payload: unknown,
  { model, url }: { model: string; url: string },
  operationOf: (request: { path: string }) => Json,
): { orders: ListedOrder[]; next: string | undefined } | undefined {
  if (!isRecord(payload) || !Array.isArray(payload.items)) return undefined
  const [owner = '', app = ''] = model.includes('/') ? model.split('/') : ['fal-ai', model]
  const orders = recordsIn(payload.items).flatMap(({ request_id: id, sent_at, started_at, json_input }) => {
    if (typeof id !== 'string' || id === '') return []
    const operation = operationOf({ path: `/${owner}/${app}/requests/${encodeURIComponent(id)}` })
    return [{ id, operation, created_at: secondsOf(sent_at ?? started_at), fields: { json_input } }]
  })
  const cursor = payload.has_more === true && typeof payload.next_cursor === 'string' ? payload.next_cursor : undefined
  const first = url.replace(/&cursor=[^&]*$/, '') // of the page before
  return { orders, next: cursor === undefined ? undefined : `${first}&cursor=${encodeURIComponent(cursor)}` }
}
