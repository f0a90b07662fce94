/** Reads a vendor's list of orders with the key of its package, and compares it with what the package sends. */
import { asRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Json } from '../../../spec/task.ts'
import { hasNoList, type ListedOrder, listSince, type OrderList } from '../../orders/order-list.ts'
import type { VideoCall } from '../../provider.ts'
import { asFetch, type PackageFetch } from '../../upstream/transport-fetch.ts'
import { type Connection, withoutUnusedKey } from '../connection.ts'
import type { PackageOrderList, VideoFamily, VideoModel } from './video-family.ts'

/** Has the package encode an order, and sends nothing. */
type Encode = (call: VideoCall, signal: AbortSignal, capture: PackageFetch) => Promise<unknown>

type EncodedOrder = { body: JsonRecord; headers: Record<string, string> }

/** Of the request for an order; the others hold its key. */
const HEADERS_OF_ORDERS = ['content-type', 'content-length', 'prefer']

export function packageOrderList(
  connection: Connection<VideoFamily, VideoModel>,
  row: PackageOrderList,
  encode: Encode,
): OrderList<VideoCall> {
  const { id, config, transport, timeouts, targetUrl, route } = connection

  async function encoded(call: VideoCall, signal: AbortSignal): Promise<EncodedOrder> {
    let order: EncodedOrder = { body: {}, headers: {} }
    const capture = asFetch(async (_, init) => {
      const body = parseJson(typeof init?.body === 'string' ? init.body : '')
      order = { body: asRecord(body), headers: Object.fromEntries(new Headers(init?.headers)) }
      return Response.json(connection.vendor.acceptedResponse)
    })
    await encode(call, signal, capture)
    return order
  }

  const unreadable = (status: number) =>
    new GatewayError('bad_upstream_response', `The upstream "${id}" returned no list of its orders (${status}).`, {
      upstream_status: status,
    })

  async function get(url: string, headers: Record<string, string>, signal: AbortSignal) {
    const target = route(url)
    if (target === undefined) throw unreadable(0)
    const answer = await transport.send({
      provider: id,
      url: target,
      method: 'GET',
      headers: { ...withoutUnusedKey(headers), 'user-agent': 'gatehouse', ...connection.headers },
      signal,
      timeouts,
      stream: false,
    })
    const { status } = answer
    return { status, payload: parseJson(status < 300 ? await answer.text() : await answer.excerpt()) }
  }

  return {
    absent: row.absent,
    ...(row.listed_seconds === undefined ? {} : { listed_seconds: row.listed_seconds }),
    async since(call, since, signal) {
      const { headers } = await encoded(call, signal)
      for (const name of HEADERS_OF_ORDERS) delete headers[name]
      const base = config.base_url === undefined ? undefined : targetUrl
      let next: string | undefined = row.url({ model: call.model, since, base })
      return listSince(
        Number.NEGATIVE_INFINITY, // the URL has the time already, and fal's list is sorted by the end of requests
        async () => {
          const { status, payload } = await get(next ?? '', headers, signal)
          if (hasNoList(status)) return undefined
          const page = status < 300 ? row.read(payload, { model: call.model, url: next ?? '' }) : undefined
          if (!page) throw unreadable(status)
          next = page.next
          const orders = page.orders.map((one): ListedOrder => {
            return { ...one, operation: { model: call.model, operation: one.operation } as Json }
          })
          return { orders, isLast: next === undefined }
        },
        () => unreadable(200),
      )
    },
    async fieldsOf(call) {
      const { body } = await encoded(call, new AbortController().signal)
      return row.fieldsOf(body, call.model)
    },
  }
}
