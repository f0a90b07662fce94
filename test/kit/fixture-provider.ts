/** A chat provider whose responses are given bytes in given pieces, without a network; and a client that assembles chunks. */
import { readFileSync } from 'node:fs'
import Schema from 'typebox/schema'
import { DEFAULT_TIMEOUTS } from '../../src/config/config.ts'
import type { ProviderKind } from '../../src/config/schema/provider-kinds.ts'
import { createLog } from '../../src/kit/log.ts'
import type { ChatChunk, ChatRequest, Reasoning } from '../../src/protocols/shared/canonical.ts'
import type { ChatCall } from '../../src/providers/provider.ts'
import { createProvider } from '../../src/providers/registry.ts'
import type { Transport } from '../../src/providers/upstream/transport.ts'
import { ChatChunk as ChunkSchema, ChatCompletion as CompletionSchema } from '../../src/spec/chat-completion.ts'
import { manualClock } from './clock.ts'

export const isChunk = Schema.Compile(ChunkSchema)
export const isCompletion = Schema.Compile(CompletionSchema)

type ReadOptions = {
  type?: string
  /** Fields of the request besides its message. */
  more?: Partial<ChatRequest>
}

function transportOf(pieces: Uint8Array[], type: string): Transport {
  return {
    async send() {
      const left = [...pieces]
      const text = async () => Buffer.concat(left).toString()
      return {
        status: 200,
        headers: new Headers({ 'content-type': type }),
        contentType: type,
        read: async () => left.shift(),
        firstByte: async () => left[0]?.find((byte) => byte > 32),
        text,
        excerpt: text,
        release: () => {},
        drop: () => {},
      }
    },
  }
}

const callOf = (more: Partial<ChatRequest> = {}): ChatCall => ({
  model: 'requested-model',
  request: { model: 'vendor/requested-model', messages: [{ role: 'user', content: 'Hallo' }], ...more },
  request_id: 'req-1',
})

/** The adapter of one kind over a transport that returns the given bytes. */
export function createFixtureProvider(kind: ProviderKind) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const never = new AbortController().signal

  function chatOf(pieces: Uint8Array[], type: string) {
    const { chat } = createProvider({
      id: 'vendor',
      config: { kind, base_url: 'https://vendor.example/v1' },
      timeouts: DEFAULT_TIMEOUTS,
      transport: transportOf(pieces, type),
      clock,
      log,
      environment: {},
      manual: async () => [],
    })
    if (!chat) throw new Error(`the kind ${kind} has no chat`)
    return chat
  }

  return {
    fixture: (name: string): Buffer => readFileSync(new URL(`../fixtures/${kind}/${name}`, import.meta.url)),
    /** Reads a stream: returns every chunk, the number of chunks of each read, and the error at the end. */
    async read(pieces: Uint8Array[], { type = 'text/event-stream', more }: ReadOptions = {}) {
      const chunks: ChatChunk[] = []
      const batches: number[] = []
      let failure: { code?: string; message?: string } | undefined
      try {
        for await (const batch of chatOf(pieces, type).chunks(callOf(more), never)) {
          chunks.push(...batch)
          batches.push(batch.length)
        }
      } catch (error) {
        failure = error as { code?: string }
      }
      return { chunks, batches, failure }
    },
    complete: async (body: string | Uint8Array, { type = 'application/json', more }: ReadOptions = {}) =>
      chatOf([Buffer.from(body)], type).complete(callOf(more), never),
  }
}

/** Assembles the chunks of one choice as a client does. */
export function assemble(chunks: ChatChunk[], choice = 0) {
  const deltas = chunks.flatMap(({ choices }) => choices).filter(({ index }) => index === choice)
  const calls: { id: string | undefined; name: string | undefined; arguments: string }[] = []
  const pieces: Reasoning[] = []
  let text = ''
  for (const { delta } of deltas) {
    const details = delta.reasoning_details ?? []
    // Complete pieces repeat their text as plain text.
    if (!details.some((detail) => detail.text !== undefined)) text += delta.reasoning_content ?? ''
    for (const piece of details) {
      pieces.push(text === '' ? piece : { text, ...piece })
      text = ''
    }
    for (const { index = -1, id, function: part } of delta.tool_calls ?? []) {
      if (calls[index] && (id ?? part.name) !== undefined) throw new Error('a tool call was named twice')
      calls[index] ??= { id, name: part.name, arguments: '' }
      calls[index].arguments += part.arguments
    }
  }
  const usage = chunks.findLast((chunk) => chunk.usage)?.usage
  return {
    content: deltas.map(({ delta }) => delta.content ?? '').join(''),
    refusal: deltas.map(({ delta }) => delta.refusal ?? '').join(''),
    pieces,
    calls,
    annotations: deltas.flatMap(({ delta }) => delta.annotations ?? []),
    finish: deltas.map(({ finish_reason }) => finish_reason).filter((reason) => typeof reason === 'string'),
    usage: usage && [usage.input_tokens, usage.prompt_tokens_details.cached_tokens, usage.output_tokens],
  }
}

export const EMPTY = { content: '', refusal: '', pieces: [], calls: [], annotations: [] }
