/**
 * `npm run bench:events`: three ways of passing the events of a provider's stream to a client of the same protocol, each
 * through the whole gateway without HTTP: processor time an event, and whether the client receives the same bytes.
 */
import { readFileSync } from 'node:fs'
import { createMeter } from '../src/families/chat/meter.ts'
import { passThroughStream, passthroughRequestFor } from '../src/families/chat/passthrough.ts'
import { watchSecrets } from '../src/families/chat/translate.ts'
import { isRecord, type JsonRecord } from '../src/kit/json.ts'
import { createSseParser, inOneLine } from '../src/kit/sse.ts'
import { chatcompatPassthrough } from '../src/protocols/chatcompat/client/passthrough.ts'
import { createChunkEncoder } from '../src/protocols/chatcompat/client/response.ts'
import { ChunkNormaliser } from '../src/protocols/chatcompat/upstream/stream.ts'
import { contentgenPassthrough } from '../src/protocols/contentgen/client/passthrough.ts'
import { createAnswerReader } from '../src/protocols/contentgen/upstream/answer.ts'
import { messagesPassthrough } from '../src/protocols/messages/client/passthrough.ts'
import { createEventReader as createMessagesReader } from '../src/protocols/messages/upstream/events.ts'
import { responsesPassthrough } from '../src/protocols/responses/client/passthrough.ts'
import { emptyPassthroughState } from '../src/protocols/responses/client/passthrough-items.ts'
import { createEventReader as createResponsesReader } from '../src/protocols/responses/upstream/events.ts'
import type { ChatChunk, ChatRequest } from '../src/protocols/shared/canonical.ts'
import { payloadOf } from '../src/protocols/shared/chunk-stream.ts'
import { nothingYet, toBytes } from '../src/protocols/shared/passthrough/events.ts'
import type { PassthroughParts, PassthroughStream } from '../src/protocols/shared/protocol.ts'
import type { Faults } from '../src/protocols/shared/upstream.ts'
import { createScrubbingTransport } from '../src/providers/upstream/transport.ts'
import type { UpstreamRequest, UpstreamResponse } from '../src/providers/upstream/upstream-request.ts'
import { GatewayError } from '../src/spec/error.ts'
import { median, show } from './figures.ts'

const RUNS = 10
/** Each run takes as much processor time; the first one warms up. */
const SECONDS = 0.15
const EVENTS = 200
/** What one read of a fast provider brings, and one of a slow provider. */
const READS = { '16 KiB a read': 16 * 1024, 'one event a read': 0 }
/** With the spaces that they have in English text. */
const WORDS = 'The gateway forwards what the model sent and counts it, one word after another.'.split(/(?= )/)

const head = { id: 'resp_A1b2C3d4E5f6G7h8I9j0K1l2', created: 1_800_000_000, model: 'house/model' }
const failed = () => new GatewayError('bad_upstream_response', 'The stream of the benchmark was not understood.')
const faults: Faults = { inAnswer: failed, notUnderstood: failed, cut: failed }
const request: ChatRequest = { model: head.model, messages: [{ role: 'user', content: 'Hello' }], stream: true }

/** What the alternatives do with the payload of an event: what the meter counts, and the payload for the client. */
type Reader = { take(payload: JsonRecord): ChatChunk[]; paths: string[][]; removed?: string }

type Protocol = {
  /** A recorded stream, and the text of the event that is repeated. */
  fixture: string
  text: string
  gateway(parts: PassthroughParts): PassthroughStream
  reader(): Reader
}

const list = (chunk: ChatChunk | undefined): ChatChunk[] => (chunk ? [chunk] : [])

const PROTOCOLS: Record<string, Protocol> = {
  'chat completions': {
    fixture: 'chatcompat/openai.sse',
    text: 'Guten',
    gateway: chatcompatPassthrough.stream,
    reader() {
      const normaliser = new ChunkNormaliser(head)
      const paths = [['id'], ['created'], ['model']]
      return { take: (payload) => list(normaliser.take(payload)), paths, removed: 'usage' }
    },
  },
  contents: {
    fixture: 'contentgen-compat/stream.sse',
    text: 'Guten ',
    gateway: contentgenPassthrough({ hasStarted: false }).stream,
    reader() {
      const reader = createAnswerReader({ fallback: head, faults: { ...faults, blocked: failed }, one_call: false })
      return { take: reader.take, paths: [['modelVersion']] }
    },
  },
  messages: {
    fixture: 'messages-compat/text.sse',
    text: 'Grüße',
    gateway: messagesPassthrough.stream,
    reader() {
      const reader = createMessagesReader(head)
      return { take: (payload) => list(reader.take(payload)), paths: [['message', 'model']] }
    },
  },
  responses: {
    fixture: 'responses-compat/text.sse',
    text: 'Grüße',
    gateway: (parts) =>
      responsesPassthrough({
        body: { model: head.model, input: 'Hello' },
        before: { items: [], ids: [] },
        input: [],
        isStored: false,
        includes_encrypted: false,
        state: emptyPassthroughState(),
      }).stream(parts),
    reader() {
      const reader = createResponsesReader(head)
      return { take: (payload) => list(reader.take(payload)), paths: [['response', 'model']] }
    },
  },
}

const VALUES: Record<string, string | number> = { ...head, modelVersion: head.model }

/**
 * Changes only the text that must change. Names are searched for, which is the fastest way and not a safe one: a real
 * implementation has to walk the text, since a nested member may have the same name.
 */
function patched(data: string, payload: JsonRecord, { paths, removed }: Reader): string {
  let text = data
  for (const [name = '', member = name] of paths) {
    if (payload[name] === undefined) continue
    const colon = text.indexOf(':', text.indexOf(`"${member}"`))
    const start = colon + (text[colon + 1] === ' ' ? 2 : 1)
    text = `${text.slice(0, start)}${JSON.stringify(VALUES[member])}${text.slice(endOfMember(text, start))}`
  }
  if (removed === undefined || payload[removed] === undefined) return text
  const start = text.lastIndexOf(`,"${removed}"`)
  const end = endOfMember(text, start + 1)
  return text.slice(0, start) + text.slice(end)
}

/** Of values without a comma or a brace in them, which the members of the benchmark are. */
function endOfMember(text: string, from: number): number {
  const comma = text.indexOf(',', from)
  const brace = text.indexOf('}', from)
  return comma === -1 || brace < comma ? brace : comma
}

/** Changes the parsed payload and serializes all of it. */
function serialized(_: string, payload: JsonRecord, { paths, removed }: Reader): string {
  for (const [name = '', member] of paths) {
    const inner = payload[name]
    if (inner === undefined) continue
    if (member === undefined) payload[name] = VALUES[name]
    else if (isRecord(inner)) inner[member] = VALUES[member]
  }
  if (removed !== undefined && payload[removed] !== undefined) payload[removed] = undefined
  return JSON.stringify(payload)
}

/**
 * Every event is parsed once, for the meter and for errors. This is the least that an alternative can do: the rules that
 * the gateway applies to single events (missing members, roles, the order of chunks) are left out.
 */
function parsedStream(reader: Reader, encode: typeof patched): PassthroughStream {
  const parser = createSseParser()
  return {
    push(bytes) {
      const step = nothingYet()
      let text = ''
      for (const { event, data } of parser.push(bytes)) {
        const payload = payloadOf({ event, data }, { faults, atEnd: false })
        if (payload instanceof GatewayError) step.failure = payload
        else if (payload) {
          text += `${event && `event: ${event}\n`}data: ${encode(data, payload, reader)}\n\n`
          for (const chunk of reader.take(payload)) step.received.push(chunk)
        }
      }
      step.events.push(toBytes(inOneLine(text)))
      return step
    },
    close: nothingYet,
    isFinished: () => true,
    includesUsage: false,
    end: () => '',
  }
}

const WAYS: Record<string, (protocol: Protocol) => (parts: PassthroughParts) => PassthroughStream> = {
  gateway: ({ gateway }) => gateway,
  patched:
    ({ reader }) =>
    () =>
      parsedStream(reader(), patched),
  serialized:
    ({ reader }) =>
    () =>
      parsedStream(reader(), serialized),
}

/** The recorded stream with its event of text repeated. */
function eventsOf({ fixture, text }: Protocol): string[] {
  const recorded = readFileSync(new URL(`../test/fixtures/${fixture}`, import.meta.url), 'utf8')
  const events = recorded.split(/(?<=\r?\n\r?\n)(?=[^\r\n])/)
  const quoted = JSON.stringify(text)
  const place = events.findIndex((event) => event.includes(quoted))
  const model = events[place]
  if (model === undefined) throw new Error(`${fixture} has no event with the text ${quoted}.`)
  const repeated = Array.from({ length: EVENTS }, (_, index) =>
    model
      .replace(quoted, JSON.stringify(WORDS[index % WORDS.length]))
      .replace(/(?<="sequence_number": ?)\d+/, String(place + 1 + index)),
  )
  return [...events.slice(0, place + 1), ...repeated, ...events.slice(place + 1)]
}

function readsOf(events: string[], size: number): Uint8Array[] {
  const encoder = new TextEncoder()
  if (size === 0) return events.map((event) => encoder.encode(event))
  const all = encoder.encode(events.join(''))
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))
}

/** A provider with one key of the usual length, which never occurs. */
const KEY = 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ'
const upstreamRequest = { headers: { authorization: `Bearer ${KEY}` }, url: '' } as unknown as UpstreamRequest
const { signal } = new AbortController()
const caller = { token_id: 'bench', mayUseModel: () => true, mayUseFamily: () => true }

/** One streamed response through admission's other side: from the provider's bytes to the client's. */
async function pass(
  stream: (parts: PassthroughParts) => PassthroughStream,
  reads: Uint8Array[],
): Promise<Uint8Array[]> {
  let at = 0
  const source = { headers: new Headers(), read: async () => reads[at++], release() {}, drop() {} }
  const transport = createScrubbingTransport({ send: async () => source as unknown as UpstreamResponse }, [KEY])
  const meter = watchSecrets(createMeter(request, { count: async () => [0], close() {} }), {
    id: 'bench',
    kind: 'chatcompat',
    watchDeltas: transport.watchDeltas,
  })
  const passthroughRequest = passthroughRequestFor(
    { ...chatcompatPassthrough, stream },
    'chatcompat',
    { model: head.model, messages: [] },
    { header: () => null },
    undefined,
  )
  if (!passthroughRequest) throw new Error('The API has no passthrough.')
  const passing = {
    target: { provider: { id: 'bench', kind: 'chatcompat' }, model: 'bench-model' },
    passthrough: {
      dialect: 'chatcompat' as const,
      send: async () => await transport.send(upstreamRequest),
      faultsOf: () => faults,
    },
    passthroughRequest,
    tried: { call: { request_id: 'req', caller, signal, arrived: 0 }, signal },
  }
  const { parts } = await passThroughStream(passing, {
    request,
    responseContext: {
      head,
      writer: { ...createChunkEncoder(head, { include_usage: false }), whole: () => undefined },
    },
    meter,
  })
  const sent: Uint8Array[] = []
  for await (const part of parts) sent.push(typeof part === 'string' ? Buffer.from(part) : part)
  await meter.usage()
  return sent
}

/** Processor nanoseconds an event. */
async function measure(stream: (parts: PassthroughParts) => PassthroughStream, reads: Uint8Array[], events: number) {
  const before = process.cpuUsage()
  let responses = 0
  let used = 0
  while (used < SECONDS * 1e6) {
    for (let count = 0; count < 10; count++) await pass(stream, reads)
    responses += 10
    const { user, system } = process.cpuUsage(before)
    used = user + system
  }
  return (used * 1000) / (responses * events)
}

/** The events of text as the client receives them; those at both ends follow rules that the alternatives leave out. */
async function textEvents(stream: (parts: PassthroughParts) => PassthroughStream, reads: Uint8Array[]) {
  const events = Buffer.concat(await pass(stream, reads))
    .toString()
    .split('\n\n')
  return events.filter((event) => WORDS.some((word) => event.includes(JSON.stringify(word))))
}

const sameMembers = (event: string) => JSON.stringify(JSON.parse(event.slice(event.indexOf('data:') + 5)))

async function comparison(found: string[], expected: string[]): Promise<string> {
  if (found.length !== expected.length) throw new Error('An alternative lost events.')
  if (found.every((event, at) => event === expected[at])) return 'the same bytes'
  if (found.every((event, at) => sameMembers(event) === sameMembers(expected[at] ?? ''))) return 'the same members'
  throw new Error(`An alternative changed an event: ${found[1]} instead of ${expected[1]}`)
}

const print = (text: string) => process.stdout.write(`${text}\n`)
print('| lowest / median | gateway, ns | patched, ns | serialized, ns | patched | serialized |')
print('| --- | ---: | ---: | ---: | --- | --- |')
for (const [name, protocol] of Object.entries(PROTOCOLS)) {
  const events = eventsOf(protocol)
  for (const [how, size] of Object.entries(READS)) {
    const reads = readsOf(events, size)
    const figures = new Map<string, number[]>()
    for (let run = 0; run <= RUNS; run++) {
      for (const [way, streamFor] of Object.entries(WAYS)) {
        const figure = await measure(streamFor(protocol), reads, events.length)
        if (run > 0) figures.set(way, [...(figures.get(way) ?? []), figure])
      }
    }
    const expected = await textEvents(protocol.gateway, reads)
    const results = ['patched', 'serialized'].map(async (way) =>
      comparison(await textEvents(WAYS[way]?.(protocol) ?? protocol.gateway, reads), expected),
    )
    const times = Object.keys(WAYS).map((way) =>
      [Math.min(...(figures.get(way) ?? [])), median(figures.get(way) ?? [])].map(show).join(' / '),
    )
    print(`| ${[`${name}, ${how}`, ...times, ...(await Promise.all(results))].join(' | ')} |`)
  }
}
