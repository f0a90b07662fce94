/** The benchmark's vendor: a bare TCP server with pre-rendered OpenAI-shaped answers, so that it is never the limit. */
import type { Socket } from 'bun'
import {
  EVENTS_A_STREAM,
  encode,
  messagesParts,
  SLOW_EVENTS,
  stampedEvent,
  streamParts,
  wholeAnswer,
} from './vendor-answers.ts'

/** Slow streams are spread over the second in as many steps, so that their events do not come as one volley. */
const SLOTS = 20
const MAX_REQUEST_BYTES = 1024 * 1024

type Connection = {
  /** The start of a request that has not arrived whole. */
  pending: Buffer | undefined
  /** What the kernel would not take yet. */
  unsent: Uint8Array | undefined
}
type Client = Socket<Connection>
type Ticking = { client: Client; left: number }

const whole = wholeAnswer()
const parts = streamParts(EVENTS_A_STREAM)
const streamed = {
  plain: encode(parts.head + parts.events.join('') + parts.end),
  withUsage: encode(parts.head + parts.events.join('') + parts.usage + parts.end),
}
const head = encode(parts.head)
const single = parts.events.map(encode)
const end = { plain: encode(parts.end), withUsage: encode(parts.usage + parts.end) }
const message = messagesParts(EVENTS_A_STREAM)
const messageAtOnce = encode(message.head + message.events.join('') + message.end)
const messageSingle = { events: message.events.map(encode), end: encode(message.end) }
const refused = encode('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')

function send(client: Client, bytes: Uint8Array): void {
  if (client.data.unsent) {
    client.data.unsent = Buffer.concat([client.data.unsent, bytes])
    return
  }
  const written = client.write(bytes)
  if (written >= 0 && written < bytes.length) client.data.unsent = bytes.subarray(written)
}

/** Sends every event in a write of its own: one for each open answer, then the next for each. */
function createSingles() {
  const open = new Set<{ client: Client; next: number; events: Uint8Array[]; end: Uint8Array }>()
  let running = false
  const turn = () => {
    for (const answer of open) {
      const event = answer.events[answer.next++]
      send(answer.client, event ?? answer.end)
      if (!event) open.delete(answer)
    }
    running = open.size > 0
    if (running) setImmediate(turn)
  }
  return (client: Client, { events, end }: { events: Uint8Array[]; end: Uint8Array }) => {
    send(client, head)
    open.add({ client, next: 0, events, end })
    if (running) return
    running = true
    setImmediate(turn)
  }
}

/** Sends one event a second on each slow stream. */
function createSlow() {
  const slots = Array.from({ length: SLOTS }, () => new Set<Ticking>())
  let at = 0
  let next = 0
  setInterval(() => {
    const slot = slots[at++ % SLOTS] ?? new Set()
    for (const stream of slot) {
      if (stream.left-- > 0) {
        send(stream.client, encode(stampedEvent()))
        continue
      }
      send(stream.client, single.at(-1) ?? end.plain)
      send(stream.client, end.plain)
      slot.delete(stream)
    }
  }, 1000 / SLOTS)
  return (client: Client) => {
    send(client, head)
    send(client, single[0] ?? head)
    slots[next++ % SLOTS]?.add({ client, left: SLOW_EVENTS })
  }
}

const startSingle = createSingles()
const startSlow = createSlow()

/** The kind of answer is the last part of the model's name, with or without a provider before it. */
function answer(client: Client, body: string): void {
  const model = /"model":"(?:[^"/]*\/)*([^"/]*)"/.exec(body)?.[1]
  const usage = body.includes('"include_usage":true')
  if (model === 'whole') send(client, whole)
  else if (model === 'stream') send(client, usage ? streamed.withUsage : streamed.plain)
  else if (model === 'single') startSingle(client, { events: single, end: usage ? end.withUsage : end.plain })
  else if (model === 'messages') send(client, messageAtOnce)
  else if (model === 'messages-single') startSingle(client, messageSingle)
  else if (model === 'slow') startSlow(client)
  else send(client, refused)
}

function receive(client: Client, chunk: Buffer): void {
  let rest = client.data.pending ? Buffer.concat([client.data.pending, chunk]) : chunk
  client.data.pending = undefined
  while (rest.length > 0) {
    const headEnd = rest.indexOf('\r\n\r\n')
    const length = headEnd < 0 ? undefined : /content-length: *(\d+)/i.exec(rest.toString('latin1', 0, headEnd))?.[1]
    const size = headEnd + 4 + Number(length)
    if (rest.length > MAX_REQUEST_BYTES || (headEnd >= 0 && length === undefined)) {
      client.end(refused)
      return
    }
    if (headEnd < 0 || rest.length < size) {
      // A copy: the runtime may use the memory of a chunk again.
      client.data.pending = Buffer.from(rest)
      return
    }
    answer(client, rest.toString('latin1', headEnd + 4, size))
    rest = rest.subarray(size)
  }
}

const server = Bun.listen<Connection>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open: (client) => {
      client.data = { pending: undefined, unsent: undefined }
      client.setNoDelay(true)
    },
    data: receive,
    drain: (client) => {
      const unsent = client.data.unsent
      client.data.unsent = undefined
      if (unsent) send(client, unsent)
    },
  },
})
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`)
