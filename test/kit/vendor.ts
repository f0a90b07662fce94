/**
 * A vendor on loopback that says exactly what a test tells it to, byte for byte. It speaks HTTP/1.1 from a bare socket,
 * because a streamed answer must be cut, hung, split or reset at any byte, which no HTTP server lets one do.
 *
 *     const vendor = startVendor()
 *     vendor.answer(whole(completion('Hello')))                     // for the next request
 *     vendor.answer(stream(chunks('Hel', 'lo'), { cutAfter: 2 }))   // for the one after it
 *     ... point a provider at `vendor.url` ...
 *     vendor.requests[0]?.json()                                    // what it was asked
 *     await vendor.aborted                                          // the client left before the answer was done
 *     await vendor.stop()
 *
 * With nothing left to play it answers any chat request with `Hello` (as a stream when asked for one) and
 * `GET .../models` with one model, `test-model`; `vendor.otherwise(answer)` changes that.
 */
import type { Socket } from 'bun'

export type VendorRequest = {
  method: string
  /** Path and query as they came. */
  path: string
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
  /** The body as it came, where it was sent with its length. */
  bytes: Uint8Array
  /** The body, parsed. */
  json(): Record<string, unknown>
  /** Resolves when the client has left before the answer was done; never resolves otherwise. */
  gone: Promise<void>
  /** Which of the vendor's connections it came on, counted from 1. */
  connection: number
}

/** What an answer writes with. After the client has left, writes do nothing. */
export type Wire = {
  request: VendorRequest
  /** Sends bytes as they are; resolves once the socket took them all (so it waits while the client does not read). */
  write(bytes: string | Uint8Array): Promise<void>
  /** Ends the connection in order (FIN), whatever was promised. */
  close(): void
  /** Tears the connection down (RST). */
  reset(): void
  gone: Promise<void>
  /** Whether the connection is closed. */
  isClosed(): boolean
}

/** Plays one answer. The connection is kept for the next request when it resolves, unless it closed it. */
export type Answer = (wire: Wire) => Promise<void> | void

export type Vendor = {
  /** The base URL to configure: `http://127.0.0.1:<port>/v1`. */
  url: string
  origin: string
  port: number
  /** Every request that arrived whole, in order. */
  requests: VendorRequest[]
  /** Queues answers, one a request. */
  answer(...answers: Answer[]): void
  /** What is played when the queue is empty. */
  otherwise(answer: Answer): void
  /** Resolves with the `count`th request (from 1), which may have come already. */
  request(count?: number): Promise<VendorRequest>
  /** Resolves when, for the first time, a client left before its answer was done. */
  aborted: Promise<VendorRequest>
  /** Connections open now. */
  connections(): number
  /** Connections opened ever. */
  accepted(): number
  /** Resolves once no connection is open. */
  idle(): Promise<void>
  stop(): Promise<void>
}

type Link = {
  number: number
  socket: Socket<Link>
  pending: Uint8Array
  busy: boolean
  closed: boolean
  /** Set while an answer is being played. */
  leave: (() => void) | undefined
  drained: (() => void) | undefined
}

/** Starts a vendor on a free port of 127.0.0.1; the given answers are queued. */
export function startVendor(...first: Answer[]): Vendor {
  const queue: Answer[] = [...first]
  const requests: VendorRequest[] = []
  const links = new Set<Link>()
  let fallback: Answer = greet
  let accepted = 0
  let watchers: (() => void)[] = []
  const aborted = Promise.withResolvers<VendorRequest>()
  const changed = () => {
    const woken = watchers
    watchers = []
    for (const wake of woken) wake()
  }
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise<void>((resolve) => watchers.push(resolve))
  }

  async function serve(link: Link): Promise<void> {
    if (link.busy || link.closed) return
    const found = takeRequest(link.pending)
    if (found === 'more') return
    link.busy = true
    link.pending = found.rest
    const left = Promise.withResolvers<void>()
    const request: VendorRequest = { ...found.request, gone: left.promise, connection: link.number }
    link.leave = () => {
      left.resolve()
      aborted.resolve(request)
    }
    requests.push(request)
    changed()
    await (queue.shift() ?? fallback)(wireOf(link, request))
    link.leave = undefined
    link.busy = false
    await serve(link)
  }

  const server = Bun.listen<Link>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        accepted++
        socket.data = {
          number: accepted,
          socket,
          pending: new Uint8Array(),
          busy: false,
          closed: false,
          leave: undefined,
          drained: undefined,
        }
        links.add(socket.data)
        changed()
      },
      data(socket, bytes) {
        socket.data.pending = Buffer.concat([socket.data.pending, bytes])
        void serve(socket.data)
      },
      drain(socket) {
        socket.data.drained?.()
      },
      close(socket) {
        const link = socket.data
        link.closed = true
        links.delete(link)
        link.leave?.()
        link.drained?.()
        changed()
      },
    },
  })

  const origin = `http://127.0.0.1:${server.port}`
  return {
    url: `${origin}/v1`,
    origin,
    port: server.port,
    requests,
    answer: (...answers) => void queue.push(...answers),
    otherwise(answer) {
      fallback = answer
    },
    async request(count = 1) {
      await until(() => requests.length >= count)
      return requests[count - 1] as VendorRequest
    },
    aborted: aborted.promise,
    connections: () => links.size,
    accepted: () => accepted,
    idle: () => until(() => links.size === 0),
    async stop() {
      server.stop(true)
    },
  }
}

function wireOf(link: Link, request: VendorRequest): Wire {
  return {
    request,
    gone: request.gone,
    isClosed: () => link.closed,
    async write(bytes) {
      let rest = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
      while (!link.closed) {
        const sent = Math.max(0, link.socket.write(rest))
        rest = rest.subarray(sent)
        if (rest.length === 0) return
        await new Promise<void>((resolve) => {
          link.drained = resolve
        })
      }
    },
    close() {
      link.leave = undefined
      link.socket.end()
    },
    reset() {
      link.leave = undefined
      link.socket.terminate()
    },
  }
}

/** One request off the front of what has arrived; bodies have a content-length or are chunked. */
function takeRequest(
  bytes: Uint8Array,
): 'more' | { request: Omit<VendorRequest, 'gone' | 'connection'>; rest: Uint8Array } {
  const text = Buffer.from(bytes).toString('latin1')
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return 'more'
  const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n')
  const [method = '', path = ''] = first.split(' ')
  const headers: Record<string, string> = {}
  for (const line of lines)
    headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim()
  let end = headEnd + 4
  let body = ''
  let came: Uint8Array = new Uint8Array()
  if (headers['transfer-encoding'] === 'chunked') {
    const parts: Buffer[] = []
    for (;;) {
      const lineEnd = text.indexOf('\r\n', end)
      if (lineEnd === -1) return 'more'
      const size = Number.parseInt(text.slice(end, lineEnd), 16)
      const next = lineEnd + 2 + size + 2
      if (text.length < next) return 'more'
      parts.push(Buffer.from(bytes.subarray(lineEnd + 2, lineEnd + 2 + size)))
      end = next
      if (size === 0) break
    }
    body = Buffer.concat(parts).toString()
  } else {
    const length = Number(headers['content-length'] ?? 0)
    if (bytes.length < end + length) return 'more'
    came = bytes.slice(end, end + length)
    body = Buffer.from(came).toString()
    end += length
  }
  return {
    request: { method, path, headers, body, bytes: came, json: () => JSON.parse(body) },
    rest: bytes.subarray(end),
  }
}

const encodeHead = (status: number, headers: Record<string, string>) =>
  `HTTP/1.1 ${status} ${status < 400 ? 'OK' : 'Error'}\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

type HeadOptions = { status?: number; headers?: Record<string, string> }

/** A whole answer: an object is sent as JSON, a string as it is (`content-type` can be set by `headers`). */
export function whole(body: unknown, { status = 200, headers = {} }: HeadOptions = {}): Answer {
  return async (wire) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const length = String(Buffer.byteLength(text))
    await wire.write(
      encodeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers }) + text,
    )
  }
}

/** An error answer in the OpenAI shape. */
export function failure(
  status: number,
  error: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Answer {
  return whole(
    { error: { message: `failed with ${status}`, type: 'error', param: null, code: null, ...error } },
    { status, headers },
  )
}

export type StreamOptions = HeadOptions & {
  /** Ends with `data: [DONE]`. Default true. */
  done?: boolean
  /** After this many items the connection is ended (FIN) without the end of the body. */
  cutAfter?: number
  /** ... is torn down (RST). */
  resetAfter?: number
  /** ... keeps silent until the client leaves. */
  hangAfter?: number
  /** The body is written in pieces of this many bytes, each its own packet. */
  chunkBytes?: number
  /** `close`: no transfer-encoding, the body ends with the connection, so a cut looks like an end. */
  framing?: 'chunked' | 'close'
}

/** An object is sent as one `data:` event, a string as the bytes it is. */
export type StreamBytes = object | string | Uint8Array
/** A promise in a list of items is waited for: a test holds the stream there as long as it likes. */
export type StreamItem = StreamBytes | Promise<unknown>

/** A streamed answer. */
export function stream(items: Iterable<StreamItem> | AsyncIterable<StreamBytes>, options: StreamOptions = {}): Answer {
  const { status = 200, headers = {}, done = true, framing = 'chunked', chunkBytes } = options
  return async (wire) => {
    const framed = framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : { connection: 'close' }
    await wire.write(encodeHead(status, { 'content-type': 'text/event-stream; charset=utf-8', ...framed, ...headers }))
    const send = async (bytes: Uint8Array) => {
      for (const piece of chunkBytes ? piecesOf(bytes, chunkBytes) : [bytes]) {
        if (framing === 'chunked') {
          await wire.write(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]))
        } else await wire.write(piece)
        if (chunkBytes) await new Promise((resolve) => setImmediate(resolve))
      }
    }
    let sent = 0
    /** Whether the answer ends here, by its script. */
    const stopsHere = async () => {
      if (sent === options.hangAfter) return wire.gone.then(() => true)
      if (sent === options.cutAfter) wire.close()
      else if (sent === options.resetAfter) wire.reset()
      else return false
      return true
    }
    for await (const item of unawaited(items)) {
      if (item.wait) {
        await item.wait
        continue
      }
      if (wire.isClosed() || (await stopsHere())) return
      if (item.bytes.length > 0) {
        await send(item.bytes)
        sent++
      }
    }
    if (await stopsHere()) return
    if (done) await send(Buffer.from('data: [DONE]\n\n'))
    if (framing === 'chunked') await wire.write('0\r\n\r\n')
    else wire.close()
  }
}

/** The items with promises kept as promises, which `for await` over a plain array would wait for too early. */
async function* unawaited(items: Iterable<StreamItem> | AsyncIterable<StreamBytes>) {
  const one = (item: StreamItem): { wait?: Promise<unknown>; bytes: Uint8Array } => {
    if (item instanceof Promise) return { wait: item, bytes: new Uint8Array() }
    if (item instanceof Uint8Array) return { bytes: item }
    return { bytes: Buffer.from(typeof item === 'string' ? item : `data: ${JSON.stringify(item)}\n\n`) }
  }
  if (Symbol.asyncIterator in items) for await (const item of items as AsyncIterable<StreamBytes>) yield one(item)
  else for (const item of items as Iterable<StreamItem>) yield one(item)
}

function* piecesOf(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** Bytes as they are, from the status line on; the connection is kept unless `close` is told. */
export function raw(bytes: string | Uint8Array, { close = false }: { close?: boolean } = {}): Answer {
  return async (wire) => {
    await wire.write(bytes)
    if (close) wire.close()
  }
}

/** Says nothing at all until the client leaves. */
export const hang = (): Answer => (wire) => wire.gone

/** Tears the connection down instead of answering. */
export const reset = (): Answer => (wire) => wire.reset()

/** Ends the connection in order instead of answering. */
export const hangUp = (): Answer => (wire) => wire.close()

/** A whole answer in the OpenAI shape; `more` overrides top-level members. */
export function completion(content: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: 'chatcmpl-test',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'test-model',
    system_fingerprint: 'fp_test',
    choices: [
      { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
    ...more,
  }
}

/** One chunk in the OpenAI shape, with one choice. */
export function chunk(
  delta: Record<string, unknown>,
  finish_reason: string | null = null,
  index = 0,
): Record<string, unknown> {
  return {
    id: 'chatcmpl-test',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'test-model',
    system_fingerprint: 'fp_test',
    choices: [{ index, delta, logprobs: null, finish_reason }],
  }
}

/** The last chunk of a stream that was asked for its usage. */
export function usageChunk(
  usage: Record<string, unknown> = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
) {
  return { ...chunk({}), choices: [], usage }
}

/** A complete stream in the OpenAI shape: role, a chunk a word, finish, usage. */
export function chunks(...words: string[]): Record<string, unknown>[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...words.map((content) => chunk({ content })),
    chunk({}, 'stop'),
    usageChunk(),
  ]
}

/** What a vendor says that was told nothing. */
const greet: Answer = (wire) => {
  if (wire.request.path.endsWith('/models')) {
    return whole({
      object: 'list',
      data: [{ id: 'test-model', object: 'model', created: 1_700_000_000, owned_by: 'test' }],
    })(wire)
  }
  const asked = wire.request.body ? wire.request.json() : {}
  return asked.stream ? stream(chunks('Hel', 'lo'))(wire) : whole(completion('Hello'))(wire)
}
