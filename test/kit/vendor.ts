/**
 * A vendor on loopback that sends exactly the bytes that a test scripts. It implements HTTP/1.1 on a bare socket, because
 * a test must cut, hold, split or reset a streamed response at any byte, which no HTTP server allows.
 *
 *     const vendor = startVendor()
 *     vendor.answer(whole(completion('Hello')))                     // for the next request
 *     vendor.answer(stream(chunks('Hel', 'lo'), { cutAfter: 2 }))   // for the one after it
 *     ... point a provider at `vendor.url` ...
 *     vendor.requests[0]?.json()                                    // the request it received
 *     await vendor.aborted                                          // the client disconnected before the response ended
 *     await vendor.stop()
 *
 * Once the script is empty it answers any chat request with `Hello` (as a stream if requested) and
 * `GET .../models` with one model, `test-model`; `vendor.otherwise(answer)` changes that.
 */
import type { Socket } from 'bun'

export type VendorRequest = {
  method: string
  /** Path and query as received. */
  path: string
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
  /** The bytes of the body, if it was sent with a content-length. */
  bytes: Uint8Array
  /** The body, parsed. */
  json(): Record<string, unknown>
  /** Resolves when the client disconnects before the response ends; never resolves otherwise. */
  aborted: Promise<void>
  /** The number of its connection, counted from 1. */
  connection: number
}

/** The connection that an answer writes to. After the client has disconnected, writes do nothing. */
export type Wire = {
  request: VendorRequest
  /** Sends bytes unchanged; resolves once the socket accepted them all (so it waits while the client does not read). */
  write(bytes: string | Uint8Array): Promise<void>
  /** Ends the connection with FIN, whatever the headers announced. */
  close(): void
  /** Resets the connection (RST). */
  reset(): void
  aborted: Promise<void>
  /** Whether the connection is closed. */
  isClosed(): boolean
}

/** Sends one response. When it resolves, the connection is reused for the next request, unless it closed it. */
export type Answer = (wire: Wire) => Promise<void> | void

export type Vendor = {
  /** The base URL to configure: `http://127.0.0.1:<port>/v1`. */
  url: string
  origin: string
  port: number
  /** Every complete request, in order. */
  requests: VendorRequest[]
  /** Queues answers, one per request. */
  answer(...answers: Answer[]): void
  /** The answer when the queue is empty. */
  otherwise(answer: Answer): void
  /** Resolves with the `count`th request (from 1), which may have arrived already. */
  request(count?: number): Promise<VendorRequest>
  /** Resolves when, for the first time, a client disconnects before its response ends. */
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
  /** Set while a response is being sent. */
  onClientClose: (() => void) | undefined
  drained: (() => void) | undefined
}

/** Starts a vendor on a free port of 127.0.0.1; the given answers are queued. */
export function startVendor(...first: Answer[]): Vendor {
  const queue: Answer[] = [...first]
  const requests: VendorRequest[] = []
  const links = new Set<Link>()
  let fallback: Answer = defaultResponse
  let accepted = 0
  let watchers: (() => void)[] = []
  const aborted = Promise.withResolvers<VendorRequest>()
  const changed = () => {
    const notified = watchers
    watchers = []
    for (const notify of notified) notify()
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
    const closedByClient = Promise.withResolvers<void>()
    const request: VendorRequest = { ...found.request, aborted: closedByClient.promise, connection: link.number }
    link.onClientClose = () => {
      closedByClient.resolve()
      aborted.resolve(request)
    }
    requests.push(request)
    changed()
    await (queue.shift() ?? fallback)(wireOf(link, request))
    link.onClientClose = undefined
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
          onClientClose: undefined,
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
        link.onClientClose?.()
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
    aborted: request.aborted,
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
      link.onClientClose = undefined
      link.socket.end()
    },
    reset() {
      link.onClientClose = undefined
      link.socket.terminate()
    },
  }
}

/** Reads one request from the start of the received bytes; bodies have a content-length or are chunked. */
function takeRequest(
  bytes: Uint8Array,
): 'more' | { request: Omit<VendorRequest, 'aborted' | 'connection'>; rest: Uint8Array } {
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
  let bodyBytes: Uint8Array = new Uint8Array()
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
    bodyBytes = bytes.slice(end, end + length)
    body = Buffer.from(bodyBytes).toString()
    end += length
  }
  return {
    request: { method, path, headers, body, bytes: bodyBytes, json: () => JSON.parse(body) },
    rest: bytes.subarray(end),
  }
}

const encodeHead = (status: number, headers: Record<string, string>) =>
  `HTTP/1.1 ${status} ${status < 400 ? 'OK' : 'Error'}\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

type HeadOptions = { status?: number; headers?: Record<string, string> }

/** A whole response: an object is sent as JSON, a string unchanged (`headers` can set `content-type`). */
export function whole(body: unknown, { status = 200, headers = {} }: HeadOptions = {}): Answer {
  return async (wire) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const length = String(Buffer.byteLength(text))
    await wire.write(
      encodeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers }) + text,
    )
  }
}

/** An error response in the OpenAI format. */
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
  /** After this many items the connection ends (FIN) without the end of the body. */
  cutAfter?: number
  /** ... is reset (RST). */
  resetAfter?: number
  /** ... sends nothing until the client disconnects. */
  hangAfter?: number
  /** The body is sent in pieces of this many bytes, each its own packet. */
  chunkBytes?: number
  /** `close`: no transfer-encoding; the body ends with the connection, so a cut looks like an end. */
  framing?: 'chunked' | 'close'
}

/** An object is sent as one `data:` event, a string unchanged. */
export type StreamBytes = object | string | Uint8Array
/** The stream waits for a promise in the list, so a test can hold it there. */
export type StreamItem = StreamBytes | Promise<unknown>

/** A streamed response. */
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
    /** Whether the script ends the response here. */
    const stopsHere = async () => {
      if (sent === options.hangAfter) return wire.aborted.then(() => true)
      if (sent === options.cutAfter) wire.close()
      else if (sent === options.resetAfter) wire.reset()
      else return false
      return true
    }
    for await (const item of withPromises(items)) {
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

/** The items, with promises wrapped: `for await` over a plain array would await them too early. */
async function* withPromises(items: Iterable<StreamItem> | AsyncIterable<StreamBytes>) {
  const toBytes = (item: StreamItem): { wait?: Promise<unknown>; bytes: Uint8Array } => {
    if (item instanceof Promise) return { wait: item, bytes: new Uint8Array() }
    if (item instanceof Uint8Array) return { bytes: item }
    return { bytes: Buffer.from(typeof item === 'string' ? item : `data: ${JSON.stringify(item)}\n\n`) }
  }
  if (Symbol.asyncIterator in items) for await (const item of items as AsyncIterable<StreamBytes>) yield toBytes(item)
  else for (const item of items as Iterable<StreamItem>) yield toBytes(item)
}

function* piecesOf(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** Raw bytes, from the status line on; the connection is reused unless `close` is set. */
export function raw(bytes: string | Uint8Array, { close = false }: { close?: boolean } = {}): Answer {
  return async (wire) => {
    await wire.write(bytes)
    if (close) wire.close()
  }
}

/** Sends nothing until the client disconnects. */
export const hang = (): Answer => (wire) => wire.aborted

/** Resets the connection instead of a response. */
export const reset = (): Answer => (wire) => wire.reset()

/** Ends the connection with FIN instead of a response. */
export const hangUp = (): Answer => (wire) => wire.close()

/** A whole response in the OpenAI format; `more` overrides top-level members. */
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

/** One chunk in the OpenAI format, with one choice. */
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

/** The last chunk of a stream with requested usage. */
export function usageChunk(
  usage: Record<string, unknown> = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
) {
  return { ...chunk({}), choices: [], usage }
}

/** A complete stream in the OpenAI format: role, a chunk per text, finish reason, usage. */
export function chunks(...texts: string[]): Record<string, unknown>[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...texts.map((content) => chunk({ content })),
    chunk({}, 'stop'),
    usageChunk(),
  ]
}

/** The answer of a vendor without a script. */
const defaultResponse: Answer = (wire) => {
  if (wire.request.path.endsWith('/models')) {
    return whole({
      object: 'list',
      data: [{ id: 'test-model', object: 'model', created: 1_700_000_000, owned_by: 'test' }],
    })(wire)
  }
  const body = wire.request.body ? wire.request.json() : {}
  return body.stream ? stream(chunks('Hel', 'lo'))(wire) : whole(completion('Hello'))(wire)
}
