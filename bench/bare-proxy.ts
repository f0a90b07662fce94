/**
 * The least that a gateway on Bun can do: parse the request, send it, parse the answer, return it. No token, no check, no
 * limit, no record. `CLIENT=sockets` sends by the gateway's own HTTP/1.1 client instead of the runtime's fetch.
 */
import { systemClock } from '../src/kit/clock.ts'
import { createHttp1Client } from '../src/kit/http1/client.ts'

const { PORT, VENDOR_PORT, CASES_PORT = VENDOR_PORT, VENDOR_KEY = '', CLIENT = 'fetch' } = process.env
const urlOf = (port: string | undefined) => new URL(`http://127.0.0.1:${port}/v1/chat/completions`)
const vendor = urlOf(VENDOR_PORT)
/** The vendor of the cases of streams. */
const cases = urlOf(CASES_PORT)
const client = createHttp1Client({ clock: systemClock })
const headers = { 'content-type': 'application/json', authorization: `Bearer ${VENDOR_KEY}` }

async function bySockets(url: URL, body: string, isStream: boolean): Promise<Response> {
  const sent = { ...headers, 'user-agent': 'bare', accept: '*/*' }
  const call = client.send({ url, method: 'POST', headers: sent, body, pool: 'vendor', connect_ms: 10_000 })
  const { status, body: reader } = await call.response
  if (isStream && reader) {
    const stream = new ReadableStream({
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => reader.cancel(),
    })
    return new Response(stream, { status, headers: { 'content-type': 'text/event-stream' } })
  }
  const pieces: Uint8Array[] = []
  if (reader) {
    for (let { done, value } = await reader.read(); !done && value; { done, value } = await reader.read())
      pieces.push(value)
  }
  return Response.json(JSON.parse(Buffer.concat(pieces).toString()), { status })
}

async function byFetch(url: URL, body: string, isStream: boolean): Promise<Response> {
  const response = await fetch(url, { method: 'POST', headers, body })
  const { status } = response
  if (isStream) return new Response(response.body, { status, headers: { 'content-type': 'text/event-stream' } })
  return Response.json(await response.json(), { status })
}

const send = CLIENT === 'sockets' ? bySockets : byFetch
Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  async fetch(request) {
    const body = (await request.json()) as { stream?: boolean; model?: string }
    return send(body.model === 'conformance' ? cases : vendor, JSON.stringify(body), body.stream === true)
  },
})
