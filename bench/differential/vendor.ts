/** A vendor of four chat protocols and the other families whose answer is decided by the request alone, faults included. */
import { Random } from './random.ts'

export type Received = { method: string; path: string; body: string }
export type Vendor = { port: number; received: Received[]; close(): void }

/** One of these parts of all requests to the faulty model fails. */
const FAULTS = ['429', '500', '400', '401', 'html', 'no-json', 'empty', 'cut', 'error-event', 'secret'] as const
type Fault = (typeof FAULTS)[number]
const WORDS = ['The ', 'gateway ', 'forwards ', 'naïve ', '日本 ', '😀 ', '"quoted" ', '\\ ', '\n', '']
/** Longer than the gateway would cut a stream into by itself. */
const STREAMED_BYTES = [7, 64, 1000, 100_000]

type Answer = { text: string; tool: boolean; input: number; output: number; cached: number; random: Random }

/** Listens on loopback. `key`: what a scrubbed error answer has in it. */
export function startVendor(key: string): Vendor {
  const received: Received[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = await request.text()
      received.push({ method: request.method, path: pathname + search, body })
      return respond(pathname, body, key)
    },
  })
  return { port: server.port ?? 0, received, close: () => void server.stop(true) }
}

function respond(path: string, body: string, key: string): Response {
  const random = new Random(path + body)
  const isFaulty = path.startsWith('/down/') || random.chance(0.12)
  const fault = path.startsWith('/down/') ? '500' : isFaulty ? random.of(FAULTS) : undefined
  const isStream = /"stream":\s*true/.test(body) || path.includes(':stream')
  if (fault && fault !== 'cut' && fault !== 'error-event') return failure(fault, key)
  const output = random.below(30)
  const answer: Answer = {
    text: Array.from({ length: output }, () => random.of(WORDS)).join(''),
    tool: body.includes('get_weather') && random.chance(0.5),
    input: random.below(500),
    output,
    cached: random.below(20),
    random,
  }
  if (!isStream) return whole(path, body, answer, fault)
  const events = streamOf(path, answer)
  const kept = fault ? events.slice(0, random.below(events.length)) : events
  if (fault === 'error-event')
    kept.push('data: {"error":{"message":"The model is overloaded.","type":"server_error"}}\n\n')
  return new Response(pieces(kept.join(''), random.of(STREAMED_BYTES)), {
    headers: { 'content-type': 'text/event-stream' },
  })
}

function failure(fault: Fault, key: string): Response {
  const error = (status: number, message: string, headers = {}) =>
    Response.json({ error: { message, type: 'some_error', code: 'some_code' } }, { status, headers })
  if (fault === '429') return error(429, 'Too many requests.', { 'retry-after': '1' })
  if (fault === '401') return error(401, `The key ${key} is wrong.`)
  if (fault === 'secret') return error(400, `Do not send ${key} here.`)
  if (fault === 'html') return new Response('<html><body>Bad gateway</body></html>', { status: 502 })
  if (fault === 'no-json') return new Response('{"choices": [', { headers: { 'content-type': 'application/json' } })
  if (fault === 'empty') return new Response('', { headers: { 'content-type': 'application/json' } })
  return error(Number(fault), `Failed with ${fault}.`)
}

function pieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(at, at + size))
      at += size
    },
  })
}

const ARGUMENTS = '{"city":"Paris","days":9007199254740993}'
const usageOf = ({ input, output, cached }: Answer) => ({
  prompt_tokens: input + cached,
  completion_tokens: output,
  total_tokens: input + cached + output,
  prompt_tokens_details: { cached_tokens: cached },
})
const messagesUsage = ({ input, output, cached }: Answer) => ({
  input_tokens: input,
  cache_read_input_tokens: cached,
  output_tokens: output,
})
const responsesUsage = ({ input, output, cached }: Answer) => ({
  input_tokens: input + cached,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + cached + output,
})
const contentUsage = ({ input, output, cached }: Answer) => ({
  promptTokenCount: input + cached,
  cachedContentTokenCount: cached,
  candidatesTokenCount: output,
  totalTokenCount: input + cached + output,
})

function whole(path: string, body: string, answer: Answer, fault: Fault | undefined): Response {
  const value = wholeValue(path, body, answer)
  // Half of all vendors print spaces and non-ASCII characters otherwise than JavaScript does.
  const text = answer.random.chance(0.5) ? JSON.stringify(value) : JSON.stringify(value, null, 2)
  const escaped = answer.random.chance(0.3) ? text.replaceAll('日', '\\u65e5') : text
  return new Response(fault ? escaped.slice(0, escaped.length / 2) : escaped, {
    headers: { 'content-type': 'application/json', 'x-vendor': 'yes' },
  })
}

function wholeValue(path: string, body: string, answer: Answer): unknown {
  const { text, tool, random } = answer
  if (path.endsWith('/embeddings')) {
    const count = /"input":\s*\["/.test(body) ? 2 : 1
    const data = Array.from({ length: count }, (_, index) => ({
      object: 'embedding',
      index,
      embedding: [0.1, -0.25, 3e-7],
    }))
    return { object: 'list', data, model: 'e', usage: { prompt_tokens: answer.input, total_tokens: answer.input } }
  }
  if (path.endsWith('/rerank')) {
    const results = [2, 0, 1].map((index) => ({ index, relevance_score: (3 - index) / 7 }))
    return { id: 'r-1', results, meta: { billed_units: { search_units: 1 } } }
  }
  if (path.endsWith('/moderations')) {
    return {
      id: 'modr-1',
      model: 'm',
      results: [{ flagged: false, categories: { hate: false }, category_scores: { hate: 0.01 } }],
    }
  }
  if (path.endsWith('/images/generations')) return { created: 1_763_683_200, data: [{ b64_json: 'iVBORw0KGgo=' }] }
  if (path.endsWith('/messages')) {
    const use = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Paris' } }
    const content = [...(text ? [{ type: 'text', text }] : []), ...(tool ? [use] : [])]
    const stop_reason = tool ? 'tool_use' : random.of(['end_turn', 'max_tokens', 'stop_sequence', 'refusal'])
    return {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason,
      stop_sequence: null,
      usage: messagesUsage(answer),
    }
  }
  if (path.includes(':generateContent')) {
    const call = { functionCall: { name: 'get_weather', args: { city: 'Paris' } } }
    const parts = [...(text ? [{ text }] : []), ...(tool ? [call] : [])]
    const finishReason = random.of(['STOP', 'MAX_TOKENS', 'SAFETY'])
    return {
      candidates: [{ content: { role: 'model', parts }, finishReason, index: 0 }],
      usageMetadata: contentUsage(answer),
      modelVersion: 'g',
    }
  }
  if (path.endsWith('/responses')) return responseValue(answer)
  const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: ARGUMENTS } }
  const message = { role: 'assistant', content: text || null, ...(tool ? { tool_calls: [call] } : {}), extra: 1 }
  const finish_reason = tool ? 'tool_calls' : random.of(['stop', 'length', 'content_filter'])
  const choice = { index: 0, message, logprobs: null, finish_reason }
  const usage = random.chance(0.9) ? { usage: usageOf(answer) } : {}
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_763_683_200,
    model: 'c',
    choices: [choice],
    ...usage,
    system_fingerprint: 'fp',
  }
}

function responseValue(answer: Answer): Record<string, unknown> {
  const { text, tool } = answer
  const message = {
    type: 'message',
    id: 'msg_1',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [] }],
  }
  const call = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'get_weather',
    arguments: ARGUMENTS,
    status: 'completed',
  }
  const output = [message, ...(tool ? [call] : [])]
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_763_683_200,
    status: 'completed',
    model: 'r',
    output,
    usage: responsesUsage(answer),
  }
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const named = (value: { type: string; [member: string]: unknown }) => `event: ${value.type}\n${data(value)}`

function streamOf(path: string, answer: Answer): string[] {
  if (path.endsWith('/messages')) return messagesEvents(answer)
  if (path.endsWith('/responses')) return responsesEvents(answer)
  if (path.includes(':stream')) return contentEvents(answer)
  const chunk = (delta: unknown, finish_reason: string | null = null) =>
    data({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1_763_683_200,
      model: 'c',
      choices: [{ index: 0, delta, finish_reason }],
    })
  const tool = { index: 0, id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } }
  const calls = answer.tool
    ? [
        chunk({ tool_calls: [tool] }),
        ...(ARGUMENTS.match(/.{1,9}/g) ?? []).map((part) =>
          chunk({ tool_calls: [{ index: 0, function: { arguments: part } }] }),
        ),
      ]
    : []
  const usage = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_763_683_200,
    model: 'c',
    choices: [],
    usage: usageOf(answer),
  }
  return [
    chunk({ role: 'assistant', content: '' }),
    ': comment\n\n',
    ...partsOf(answer.text).map((content) => chunk({ content })),
    ...calls,
    chunk({}, answer.tool ? 'tool_calls' : 'stop'),
    ...(answer.random.chance(0.9) ? [data(usage)] : []),
    'data: [DONE]\n\n',
  ]
}

const partsOf = (text: string): string[] => text.match(/[^ ]* ?/gu)?.filter((part) => part !== '') ?? []

function messagesEvents(answer: Answer): string[] {
  const { output_tokens: _, ...input } = messagesUsage(answer)
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    usage: { ...input, output_tokens: 0 },
  }
  const tool = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }
  return [
    named({ type: 'message_start', message }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    named({ type: 'ping' }),
    ...partsOf(answer.text).map((text) =>
      named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    ),
    named({ type: 'content_block_stop', index: 0 }),
    ...(answer.tool
      ? [
          named({ type: 'content_block_start', index: 1, content_block: tool }),
          ...(ARGUMENTS.match(/.{1,9}/g) ?? []).map((partial_json) =>
            named({ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json } } as {
              type: string
            }),
          ),
          named({ type: 'content_block_stop', index: 1 }),
        ]
      : []),
    named({
      type: 'message_delta',
      delta: { stop_reason: answer.tool ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: answer.output },
    }),
    named({ type: 'message_stop' }),
  ]
}

function contentEvents(answer: Answer): string[] {
  const chunk = (parts: unknown[], last = {}) =>
    data({
      candidates: [{ content: { role: 'model', parts }, index: 0, ...last }],
      usageMetadata: contentUsage(answer),
      modelVersion: 'g',
    })
  const call = { functionCall: { name: 'get_weather', args: { city: 'Paris' } } }
  return [
    ...partsOf(answer.text).map((text) => chunk([{ text }])),
    ...(answer.tool ? [chunk([call])] : []),
    chunk([], { finishReason: 'STOP' }),
  ]
}

function responsesEvents(answer: Answer): string[] {
  const response = responseValue(answer)
  const [message, ...calls] = response.output as { id: string; content?: { text: string }[] }[]
  let sequence_number = 0
  const event = (type: string, members: object) => named({ type, sequence_number: sequence_number++, ...members })
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const open = { ...response, status: 'in_progress', output: [], usage: null }
  const part = { type: 'output_text', text: '', annotations: [] }
  return [
    event('response.created', { response: open }),
    event('response.output_item.added', { output_index: 0, item: { ...message, status: 'in_progress', content: [] } }),
    event('response.content_part.added', { ...place, part }),
    ...partsOf(answer.text).map((delta) => event('response.output_text.delta', { ...place, delta })),
    event('response.output_text.done', { ...place, text: answer.text }),
    event('response.content_part.done', { ...place, part: { ...part, text: answer.text } }),
    event('response.output_item.done', { output_index: 0, item: message }),
    ...calls.flatMap((item, index) => [
      event('response.output_item.added', {
        output_index: index + 1,
        item: { ...item, arguments: '', status: 'in_progress' },
      }),
      event('response.function_call_arguments.delta', { item_id: item.id, output_index: index + 1, delta: ARGUMENTS }),
      event('response.function_call_arguments.done', {
        item_id: item.id,
        output_index: index + 1,
        arguments: ARGUMENTS,
      }),
      event('response.output_item.done', { output_index: index + 1, item }),
    ]),
    event('response.completed', { response }),
  ]
}
