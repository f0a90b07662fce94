import { afterEach, describe, expect, it } from 'bun:test'
import { createHttpBatch, type HttpBatchSettings } from './http-batch.ts'

const servers: { stop(force: boolean): unknown }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true)
})

function receiver(answer: () => Response) {
  const received: { type: string | null; key: string | null; body: string; path: string }[] = []
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { headers } = request
      const { pathname: path } = new URL(request.url)
      received.push({ type: headers.get('content-type'), key: headers.get('x-key'), body: await request.text(), path })
      return answer()
    },
  })
  servers.push(server)
  const send = (format: HttpBatchSettings['format']) =>
    createHttpBatch({ url: `http://127.0.0.1:${server.port}/in`, format, headers: { 'x-key': 'k' } }).send(
      [
        { id: '1', json: '{"a":1}' },
        { id: '2', json: '{"a":2}' },
      ],
      new AbortController().signal,
    )
  return { received, send }
}

describe('batches by HTTP', () => {
  it.each([
    ['ndjson', 'application/x-ndjson', '{"a":1}\n{"a":2}\n'],
    ['json', 'application/json', '[{"a":1},{"a":2}]'],
    ['elasticsearch', 'application/x-ndjson', '{"create":{"_id":"1"}}\n{"a":1}\n{"create":{"_id":"2"}}\n{"a":2}\n'],
  ] as const)('sends %s', async (format, type, body) => {
    const { received, send } = receiver(() => Response.json({ errors: false }))
    expect(await send(format)).toBe(0)
    expect(received).toEqual([{ type, body, key: 'k', path: '/in' }])
  })

  it.each([429, 503, 401, 302])('is to be sent again after %d, and follows no redirect', async (status) => {
    const { received, send } = receiver(() => new Response('secret', { status, headers: { location: '/other' } }))
    const failed = await send('ndjson').catch((error: Error) => error.message)
    expect([failed, received.length]).toEqual([`The receiver answered ${status}.`, 1])
  })

  it('counts a batch that the receiver will never take', async () => {
    expect(await receiver(() => new Response('', { status: 400 })).send('ndjson')).toBe(2)
  })

  it('reads what Elasticsearch has refused, has already, or is to get again', async () => {
    const items =
      (...statuses: number[]) =>
      () =>
        Response.json({ errors: true, items: statuses.map((status) => ({ create: { status } })) })
    expect(await receiver(items(201, 400)).send('elasticsearch')).toBe(1)
    expect(await receiver(items(201, 409)).send('elasticsearch')).toBe(0)
    expect(receiver(items(201, 429)).send('elasticsearch')).rejects.toThrow('too busy')
  })

  it('counts a batch as refused where the answer is none of a bulk API, and sends it not again', async () => {
    for (const text of ['<html>', '[]', '5', `{"errors":true,"items":[${' '.repeat(4_000_001)}]}`]) {
      expect(await receiver(() => new Response(text)).send('elasticsearch')).toBe(2)
    }
  })

  it('asks a bulk API only for what was refused', async () => {
    let query = ''
    const server = Bun.serve({
      port: 0,
      fetch(request) {
        query = new URL(request.url).search
        return Response.json({ errors: false })
      },
    })
    servers.push(server)
    const url = `http://127.0.0.1:${server.port}/_bulk?pipeline=a`
    const batch = createHttpBatch({ url, format: 'elasticsearch', headers: {} })
    expect(await batch.send([{ id: '1', json: '{}' }], new AbortController().signal)).toBe(0)
    expect(query).toBe('?pipeline=a&filter_path=errors%2Citems.*.status')
  })
})
