/** The bytes that the benchmark's vendor answers with, rendered once: whole answers, streams, and slow streams. */

export const EVENTS_A_STREAM = 200
export const SLOW_EVENTS = 15

/** About a hundred tokens: an answer of everyday size. */
const WORDS = 'The gateway forwards what the model said and counts what passed, one word after another. '
const HEAD = { created: 1_763_683_200, model: 'bench-model', system_fingerprint: 'fp_bench' }
const SSE_HEADERS =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
  'transfer-encoding: chunked\r\nconnection: keep-alive\r\n' +
  // nginx then passes the stream on without buffering, as its manual asks of applications.
  'x-accel-buffering: no\r\n\r\n'
const LAST_CHUNK = '0\r\n\r\n'

function usage(completionTokens: number) {
  return {
    prompt_tokens: 42,
    completion_tokens: completionTokens,
    total_tokens: 42 + completionTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}

/** One unstreamed answer, headers and body. */
export function wholeAnswer(): Uint8Array {
  const body = JSON.stringify({
    id: 'chatcmpl-benchmark0001',
    object: 'chat.completion',
    ...HEAD,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: WORDS.repeat(6), refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: usage(102),
  })
  return encode(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
      `connection: keep-alive\r\n\r\n${body}`,
  )
}

/** A stream's parts, each an HTTP chunk of its own with one event, as vendors send them. */
export type StreamParts = { head: string; events: string[]; usage: string; end: string }

export function streamParts(count: number): StreamParts {
  const words = WORDS.split(' ')
  const content = (index: number) => event({ content: `${words[index % words.length]} ` })
  return {
    head: SSE_HEADERS,
    events: [
      event({ role: 'assistant', content: '' }),
      ...Array.from({ length: count - 2 }, (_, index) => content(index)),
      event({}, 'stop'),
    ],
    usage: httpChunk(`data: ${JSON.stringify({ ...chunkHead(), choices: [], usage: usage(count) })}\n\n`),
    end: httpChunk('data: [DONE]\n\n') + LAST_CHUNK,
  }
}

/** An event that carries the time of its sending, in microseconds since 1970, for the receiver to compare. */
export function stampedEvent(): string {
  return event({ content: `sent=${wallMicroseconds()};` })
}

export function wallMicroseconds(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** A messages stream, each event an HTTP chunk of its own. */
export function messagesParts(count: number): Omit<StreamParts, 'usage'> {
  return { head: SSE_HEADERS, events: messagesEvents(count).map(httpChunk), end: LAST_CHUNK }
}

/** A chat-completions stream without HTTP's framing, an event each. */
export function chatEvents(count: number): string[] {
  const { events, usage, end } = streamParts(count)
  return [...events, usage, end.replace(LAST_CHUNK, '')].map((framed) => framed.slice(framed.indexOf('\r\n') + 2, -2))
}

/** A messages stream of as many events, without HTTP's framing. */
export function messagesEvents(count: number): string[] {
  const words = WORDS.split(' ')
  const named = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const usage = { input_tokens: 42, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 }
  const head = { id: 'msg_benchmark0001', type: 'message', role: 'assistant', model: HEAD.model, content: [] }
  const ends = { stop_reason: null, stop_sequence: null }
  return [
    named('message_start', { message: { ...head, ...ends, usage } }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...Array.from({ length: count - 5 }, (_, index) =>
      named('content_block_delta', {
        index: 0,
        delta: { type: 'text_delta', text: `${words[index % words.length]} ` },
      }),
    ),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { ...ends, stop_reason: 'end_turn' }, usage: { output_tokens: count } }),
    named('message_stop', {}),
  ]
}

function event(delta: Record<string, string>, finishReason: string | null = null): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }]
  return httpChunk(`data: ${JSON.stringify({ ...chunkHead(), choices })}\n\n`)
}

function chunkHead() {
  return { id: 'chatcmpl-benchmark0001', object: 'chat.completion.chunk', ...HEAD }
}

/** The text is ASCII throughout, so its length is its size in bytes. */
function httpChunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}
