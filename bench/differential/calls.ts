/** Generates the requests of the differential run: every family and dialect, good, nearly good and broken. */
import { Random } from './random.ts'

export type Call = { index: number; method: string; path: string; headers: Record<string, string>; body: string }

/** The providers of the run's configuration, by the wire protocol of each. */
const CHAT_MODELS = [
  'chatcompat',
  'messages',
  'contentgen',
  'responses',
  'chatcompat',
  'sandbox/general',
  'fallback',
  'none',
]
const TEXTS = [
  'Hello',
  'What is the weather in Paris?',
  'Count to three.',
  'naïve façade, 日本語, 😀',
  'zig\nzag\tzug "zog" \\ zeg',
  '\u2028\u0000 control',
  'x'.repeat(3000),
  '</script><!--',
  '',
]
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city'],
  additionalProperties: false,
}
const ODD_VALUES: unknown[] = [null, '', 0, -1, 1e21, true, [], {}, 'text', [null], { type: 'x' }, 0.5]

/** A text that no other call of the run has, so that answers differ and the cache is hit on purpose only. */
const text = (random: Random) => (random.chance(0.9) ? `${random.of(TEXTS)} ${random.below(1e9)}` : random.of(TEXTS))

const functionTool = { name: 'get_weather', description: 'The weather of a city', parameters: SCHEMA }

function chatBody(random: Random): Record<string, unknown> {
  const messages: unknown[] = []
  if (random.chance(0.3)) messages.push({ role: random.of(['system', 'developer']), content: text(random) })
  if (random.chance(0.25)) {
    const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }
    messages.push(
      { role: 'user', content: text(random) },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: text(random) },
    )
  }
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }
  messages.push({
    role: 'user',
    content: random.chance(0.15) ? [{ type: 'text', text: text(random) }, image] : text(random),
  })
  return {
    model: random.of(CHAT_MODELS),
    messages,
    ...random.some(
      {
        stream: true,
        stream_options: { include_usage: random.chance(0.5) },
        temperature: random.below(20) / 10,
        top_p: 0.5,
        max_tokens: 1 + random.below(200),
        max_completion_tokens: 1 + random.below(200),
        n: 1 + random.below(2),
        stop: random.of<unknown>(['END', ['a', 'b']]),
        seed: random.below(1e6),
        user: 'user-1',
        metadata: { a: 'b' },
        tools: [{ type: 'function', function: functionTool }],
        parallel_tool_calls: false,
        response_format: random.of<unknown>([
          { type: 'json_object' },
          { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA, strict: true } },
        ]),
        logprobs: true,
        reasoning_effort: random.of(['low', 'high']),
        presence_penalty: 1,
        an_unknown_field: 1,
      },
      0.15,
    ),
    ...(random.chance(0.4) ? { stream: true } : {}),
  }
}

function messagesBody(random: Random): Record<string, unknown> {
  const content = random.chance(0.2)
    ? [
        { type: 'text', text: text(random) },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
      ]
    : text(random)
  return {
    model: random.of(CHAT_MODELS),
    max_tokens: 1 + random.below(300),
    messages: [{ role: 'user', content }],
    ...random.some(
      {
        system: random.of<unknown>([
          'Be short.',
          [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral' } }],
        ]),
        temperature: random.below(10) / 10,
        top_k: 5,
        stop_sequences: ['END'],
        tools: [{ name: 'get_weather', description: 'Weather', input_schema: SCHEMA }],
        tool_choice: { type: 'auto' },
        metadata: { user_id: 'user-1' },
        thinking: { type: 'enabled', budget_tokens: 1024 },
      },
      0.2,
    ),
    ...(random.chance(0.5) ? { stream: true } : {}),
  }
}

function responsesBody(random: Random): Record<string, unknown> {
  const input = random.of<unknown>([
    text(random),
    [{ role: 'user', content: text(random) }],
    [{ role: 'user', content: [{ type: 'input_text', text: text(random) }] }],
  ])
  return {
    model: random.of(CHAT_MODELS),
    input,
    store: false,
    ...random.some(
      {
        instructions: 'Be short.',
        max_output_tokens: 16 + random.below(200),
        temperature: 1,
        tools: [{ type: 'function', ...functionTool, strict: true }],
        reasoning: { effort: 'low' },
        text: { format: { type: 'json_schema', name: 'x', schema: SCHEMA, strict: true } },
        metadata: { a: 'b' },
        truncation: 'auto',
      },
      0.2,
    ),
    ...(random.chance(0.5) ? { stream: true } : {}),
  }
}

function contentBody(random: Random): Record<string, unknown> {
  return {
    contents: [{ role: 'user', parts: [{ text: text(random) }] }],
    ...random.some(
      {
        systemInstruction: { parts: [{ text: 'Be short.' }] },
        generationConfig: { temperature: 1, maxOutputTokens: 1 + random.below(200), stopSequences: ['END'] },
        tools: [{ functionDeclarations: [{ name: 'get_weather', description: 'Weather', parameters: SCHEMA }] }],
        toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      },
      0.3,
    ),
  }
}

/** The families of requests; the number is how often one comes among all. */
const KINDS: readonly [number, (random: Random) => { path: string; body: Record<string, unknown>; method?: string }][] =
  [
    [30, (random) => ({ path: '/v1/chat/completions', body: chatBody(random) })],
    [20, (random) => ({ path: '/v1/messages', body: messagesBody(random) })],
    [18, (random) => ({ path: '/v1/responses', body: responsesBody(random) })],
    [
      14,
      (random) => {
        const verb = random.of(['generateContent', 'streamGenerateContent?alt=sse', 'countTokens'])
        return { path: `/v1beta/models/${random.of(CHAT_MODELS)}:${verb}`, body: contentBody(random) }
      },
    ],
    [
      4,
      (random) => ({
        path: '/v1/completions',
        body: {
          model: random.of(CHAT_MODELS),
          prompt: text(random),
          ...random.some({ stream: true, max_tokens: 9 }, 0.4),
        },
      }),
    ],
    [
      4,
      (random) => ({
        path: '/v1/embeddings',
        body: {
          model: random.of(['embedding', 'sandbox/embedding']),
          input: random.of<unknown>([text(random), [text(random), text(random)], [1, 2, 3]]),
          ...random.some({ encoding_format: 'base64', dimensions: 8, user: 'user-1' }, 0.3),
        },
      }),
    ],
    [
      2,
      (random) => ({
        path: random.of(['/v1/rerank', '/v2/rerank']),
        body: {
          model: random.of(['rerank', 'sandbox/rerank']),
          query: text(random),
          documents: [text(random), text(random), text(random)],
          ...random.some({ top_n: 2, return_documents: true }, 0.5),
        },
      }),
    ],
    [2, (random) => ({ path: '/v1/moderations', body: { model: 'moderation', input: text(random) } })],
    [
      2,
      (random) => ({
        path: '/v1/images/generations',
        body: { model: 'image', prompt: text(random), ...random.some({ n: 2, size: '1024x1024', user: 'u' }, 0.3) },
      }),
    ],
    [1, (random) => ({ path: '/v1/messages/count_tokens', body: messagesBody(random) })],
    [
      1,
      (random) => ({
        path: random.of(['/v1/models', '/v1beta/models', '/v1/models/chatcompat', '/nothing']),
        body: {},
        method: 'GET',
      }),
    ],
  ]
const WEIGHT = KINDS.reduce((sum, [weight]) => sum + weight, 0)

/** One member replaced, removed or nested. */
function spoiled(random: Random, body: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(body)
  if (names.length === 0) return body
  const name = random.of(names)
  const value = body[name]
  if (random.chance(0.2)) return Object.fromEntries(Object.entries(body).filter(([other]) => other !== name))
  if (Array.isArray(value) && random.chance(0.5) && typeof value[0] === 'object' && value[0] !== null) {
    return { ...body, [name]: [spoiled(random, value[0] as Record<string, unknown>), ...value.slice(1)] }
  }
  return { ...body, [name]: random.of(ODD_VALUES) }
}

/** `token`: the secret that all requests but some wrong ones carry. The same seed gives the same calls. */
export function generateCalls(seed: number, count: number, token: string): Call[] {
  const random = new Random(seed)
  const calls: Call[] = []
  while (calls.length < count) {
    const earlier = calls.at(-1 - random.below(50))
    // A repetition: a hit where the cache is on, and the same answer elsewhere.
    calls.push(
      earlier && random.chance(0.03) ? { ...earlier, index: calls.length } : nextCall(random, calls.length, token),
    )
  }
  return calls
}

function nextCall(random: Random, index: number, token: string): Call {
  const place = random.below(WEIGHT)
  let sum = 0
  const kind = KINDS.find(([weight]) => {
    sum += weight
    return place < sum
  })
  if (!kind) throw new Error('no kind of request has this place')
  const { path, body, method = 'POST' } = kind[1](random)
  const used = random.chance(0.1) ? spoiled(random, body) : body
  const json = JSON.stringify(used)
  const broken = random.chance(0.02)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    ...(path.startsWith('/v1beta') ? { 'x-goog-api-key': token } : { authorization: `Bearer ${token}` }),
    ...(random.chance(0.02) ? { authorization: 'Bearer sk-wrong' } : {}),
    ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
    ...(random.chance(0.05) ? { 'x-cache': 'use' } : {}),
    ...(random.chance(0.05) ? { 'x-request-id': `client-${index}` } : {}),
  }
  const text = broken ? json.slice(0, random.below(json.length)) : json
  return { index, method, path, headers, body: method === 'GET' ? '' : text }
}
