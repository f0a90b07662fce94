/**
 * `npm run bench:streams`: one streamed answer through passthrough or translation, without HTTP around it: processor time an event; and what
 * of it goes into looking for the provider's secrets.
 */
import type { ResponseStream } from '../src/calls/family.ts'
import { chatcompatDialect } from '../src/families/chat/dialects/chatcompat.ts'
import type { Dialect } from '../src/families/chat/dialects/dialect.ts'
import { messagesDialect } from '../src/families/chat/dialects/messages.ts'
import { type ChatMeter, createMeter } from '../src/families/chat/meter.ts'
import { passThroughStream, passthroughRequestFor } from '../src/families/chat/passthrough.ts'
import { translated, watchSecrets } from '../src/families/chat/translate.ts'
import { createChunkDecoder } from '../src/protocols/chatcompat/upstream/stream.ts'
import { createEventReader } from '../src/protocols/messages/upstream/events.ts'
import type { ChatRequest } from '../src/protocols/shared/canonical.ts'
import { type ChunkDecoder, ChunkStream, createEventDecoder } from '../src/protocols/shared/chunk-stream.ts'
import type { Faults } from '../src/protocols/shared/upstream.ts'
import type { PassthroughProvider } from '../src/providers/provider.ts'
import { createScrubbingTransport } from '../src/providers/upstream/transport.ts'
import type { UpstreamRequest, UpstreamResponse } from '../src/providers/upstream/upstream-request.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { Usage } from '../src/spec/usage.ts'
import { median, show } from './figures.ts'
import { chatEvents, EVENTS_A_STREAM, messagesEvents } from './vendor-answers.ts'

const RUNS = 5
/** Each run is as long as this many seconds of processor time, after one that warms up. */
const SECONDS = 1
/** What one read of a fast vendor brings, and one of a slow one. */
const READS = { '16 KiB a read': 16 * 1024, 'one event a read': 0 }

const head = { id: 'chatcmpl-ours', created: 1_800_000_000, model: 'house/model' }
const broken = () => new GatewayError('bad_upstream_response', 'The stream of the benchmark was not understood.')
const faults: Faults = { inAnswer: broken, notUnderstood: broken, cut: broken }
const request: ChatRequest = { model: head.model, messages: [{ role: 'user', content: 'Hello' }], stream: true }
const { signal } = new AbortController()
const caller = { token_id: 'bench', mayUseModel: () => true, mayUseFamily: () => true }
const newMeter = (): ChatMeter => createMeter(request, { count: async () => [0], close() {} })

/** The stream's bytes as reads bring them. */
function readsOf(events: string[], size: number): Uint8Array[] {
  const encoder = new TextEncoder()
  if (size === 0) return events.map((event) => encoder.encode(event))
  const all = encoder.encode(events.join(''))
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))
}

const answerOf = (reads: Uint8Array[]) => {
  let at = 0
  return {
    headers: new Headers(),
    read: async () => reads[at++],
    release() {},
    drop() {},
  } as unknown as UpstreamResponse
}

type Case = { dialect: Dialect; events: string[]; decoder(): ChunkDecoder }

const CASES: Record<string, Case> = {
  'chat completions': {
    dialect: chatcompatDialect({ delta_mirror: true }),
    events: chatEvents(EVENTS_A_STREAM),
    decoder: () => createChunkDecoder(head, faults),
  },
  messages: {
    dialect: messagesDialect(),
    events: messagesEvents(EVENTS_A_STREAM),
    decoder: () => createEventDecoder(createEventReader(head), faults),
  },
}

/** A provider with one key of the usual length, which never occurs. */
const KEY = 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ'
const upstreamRequest = { headers: { authorization: `Bearer ${KEY}` }, url: '' } as unknown as UpstreamRequest
let reading: UpstreamResponse
const scrubbing = createScrubbingTransport({ send: async () => reading }, [KEY])
const watching = { id: 'bench', kind: 'chatcompat', watchDeltas: scrubbing.watchDeltas }

type Way = 'scrubbed' | 'bare'

async function sendOver(way: Way, reads: Uint8Array[]): Promise<UpstreamResponse> {
  reading = answerOf(reads)
  return way === 'bare' ? reading : scrubbing.send(upstreamRequest)
}

const meterFor = (way: Way, meter: ChatMeter) => (way === 'bare' ? meter : watchSecrets(meter, watching))

const ROUTES = {
  relayed({ dialect }: Case, reads: Uint8Array[], way: Way, meter: ChatMeter): Promise<ResponseStream<Usage>> {
    const send = () => sendOver(way, reads)
    const passthrough: PassthroughProvider = { dialect: 'chatcompat', send, faultsOf: () => faults }
    const body = { model: head.model, messages: [] }
    const client = { header: () => null }
    const passthroughRequest = passthroughRequestFor(dialect.passthrough, dialect.family, body, client, undefined)
    if (!passthroughRequest) throw new Error('The API has no passthrough.')
    const responseContext = { head, writer: dialect.writer(head, request, 'req') }
    const target = { provider: { id: 'bench', kind: 'chatcompat' }, model: 'bench-model' }
    const call = { request_id: 'req', caller, signal, arrived: 0 }
    const passing = { target, passthrough, passthroughRequest, tried: { call, signal } }
    return passThroughStream(passing, { request, responseContext, meter: meterFor(way, meter) })
  },
  async translated(
    { dialect, decoder }: Case,
    reads: Uint8Array[],
    way: Way,
    meter: ChatMeter,
  ): Promise<ResponseStream<Usage>> {
    const answer = await sendOver(way, reads)
    const chunks = new ChunkStream(async () => ({ body: answer, decoder: decoder(), faults }))
    return translated(chunks, dialect.writer(head, request, 'req'), meterFor(way, meter))
  },
}

type Measured = { route: keyof typeof ROUTES; way: Way; of: Case; reads: Uint8Array[] }

/** One answer from its first byte to its last, encoded for the wire. Resolves with its size. */
async function answer({ route, way, of, reads }: Measured): Promise<number> {
  const encoder = new TextEncoder()
  const meter = newMeter()
  const stream = await ROUTES[route](of, reads, way, meter)
  let size = 0
  for await (const piece of stream.parts) {
    size += (typeof piece === 'string' ? encoder.encode(piece) : piece).length
  }
  await meter.usage()
  return size
}

/** Processor nanoseconds an event. */
async function measure(measured: Measured): Promise<number> {
  const before = process.cpuUsage()
  let answers = 0
  let used = 0
  while (used < SECONDS * 1e6) {
    for (let count = 0; count < 20; count++) await answer(measured)
    answers += 20
    const { user, system } = process.cpuUsage(before)
    used = user + system
  }
  return (used * 1000) / (answers * measured.of.events.length)
}

const write = (text: string) => process.stdout.write(`${text}\n`)
write(
  '| | relayed, ns | translated, ns | translated ÷ relayed | relayed, of it for secrets | translated, of it for secrets |',
)
write('| --- | ---: | ---: | ---: | ---: | ---: |')
for (const [name, of] of Object.entries(CASES)) {
  for (const [how, size] of Object.entries(READS)) {
    const reads = readsOf(of.events, size)
    const figures: Record<string, number[]> = {}
    for (let run = 0; run <= RUNS; run++) {
      for (const route of ['relayed', 'translated'] as const) {
        for (const way of ['bare', 'scrubbed'] as const) {
          const figure = await measure({ route, way, of, reads })
          const name = `${route} ${way}`
          if (run > 0) figures[name] = [...(figures[name] ?? []), figure]
        }
      }
    }
    const medianOf = (key: string) => median(figures[key] ?? [])
    const [relayed, other] = [medianOf('relayed scrubbed'), medianOf('translated scrubbed')]
    const share = (route: string) =>
      `${Math.round((1 - medianOf(`${route} bare`) / medianOf(`${route} scrubbed`)) * 100)} %`
    const cells = [show(relayed), show(other), `${show(other / relayed)} ×`, share('relayed'), share('translated')]
    write(`| ${name}, ${how} | ${cells.join(' | ')} |`)
  }
}
