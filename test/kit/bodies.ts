/** Bodies for `POST /v1/chat/completions`, made up by fast-check: right, nearly right, wrong and hostile. */
import fc, { type Arbitrary } from 'fast-check'

/** What a body asks the sandbox to do wrong; `undefined` is nothing. */
export type Fault = { status?: number; cut_after?: number; error_after?: number }

export type Body = { text: string; fault?: Fault }

/** Strings that have broken parsers, prototypes, frames, patterns or logs somewhere. */
const HOSTILE = [
  '',
  ' ',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '\u0000',
  '\ud800',
  'a\udfffb',
  '\ud83d\ude00'.repeat(50),
  '\u2028\u2029',
  '\ufeff',
  '\r\n\r\n',
  'data: [DONE]\n\n',
  'x\n\ndata: {"error":{}}\n\n',
  ': keep-alive',
  '${HOME}',
  '%2F..%2F',
  '"}]}',
  '\\u0000',
  '<script>',
  "'; DROP TABLE tokens; --",
  '(a+)+$'.repeat(5),
  'a'.repeat(20_000),
  '@sandbox',
  '@sandbox nothing=1',
  '@sandbox tokens=999999999999',
  '@sandbox tokens=-1',
  '@sandbox __proto__=1',
  '@sandbox status=200',
  '@sandbox tokens',
  'NaN',
  'Infinity',
  'null',
  'data:image/png;base64,@@@',
  'http://127.0.0.1:1/none.png',
]

/** Written as they are: JSON knows them, `JSON.stringify` does not write them. */
const RAW = ['1e400', '-1e400', '1e-400', '-0', '9007199254740993', '123456789012345678901234567890', '0.1e1', '1E0']
const RAW_MARK = '@@raw:'
const RAW_PATTERN = new RegExp(`"${RAW_MARK}([^"]*)"`, 'g')

export const hostileString: Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 30 }) },
)
const rawNumber = fc.constantFrom(...RAW.map((raw) => RAW_MARK + raw))

/** Deeper than any request; at 256 levels the whole body is refused. */
const deep = fc.tuple(fc.boolean(), fc.constantFrom(3, 200, 253, 254, 255, 256, 300, 5_000)).map(([isArray, depth]) => {
  const [open, end] = isArray ? ['[', ']'] : ["{'a':", '}']
  return `${RAW_MARK}${open.repeat(depth)}1${end.repeat(depth)}`
})

const scalar = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1, 0.5, 2, 1e21, 2 ** 53, '', '1'),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  hostileString,
  rawNumber,
)

/** Any JSON value, small; objects may have members of any name, `__proto__` too. */
export const anyValue: Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(hostileString, fc.constantFrom('type', 'role', 'content', 'name')), tie('value'), {
      maxKeys: 4,
      noNullPrototype: false,
    }),
  ),
})).value

/** JSON text, with what is written raw put in (its quotes are single till then). */
export const textOf = (value: unknown): string =>
  JSON.stringify(value).replaceAll(RAW_PATTERN, (_, raw: string) => raw.replaceAll("'", '"'))

const word = fc.constantFrom(
  'Hello',
  'What is the weather in Paris?',
  'How do I create a token?',
  'Count to 3',
  'call f and g',
)
const spoken = fc.oneof({ weight: 3, arbitrary: word }, { weight: 1, arbitrary: hostileString })
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

const part = fc.oneof(
  { weight: 4, arbitrary: spoken.map((text) => ({ type: 'text', text })) },
  { weight: 1, arbitrary: fc.constant({ type: 'image_url', image_url: { url: PIXEL } }) },
  { weight: 1, arbitrary: fc.constant({ type: 'refusal', refusal: 'No.' }) },
)
const content = fc.oneof({ weight: 3, arbitrary: spoken }, { weight: 1, arbitrary: fc.array(part, { maxLength: 3 }) })
const call = fc.record({
  id: fc.constantFrom('call_1', 'call_2', ''),
  type: fc.constant('function'),
  function: fc.record({
    name: fc.constantFrom('f', 'get_weather'),
    arguments: fc.constantFrom('{}', '{"a":1}', 'no JSON'),
  }),
})
const message = fc.oneof(
  fc.record({ role: fc.constantFrom('system', 'developer', 'user', 'assistant'), content }),
  fc.record({
    role: fc.constant('assistant'),
    content: fc.constant(null),
    tool_calls: fc.array(call, { maxLength: 2 }),
  }),
  fc.record({ role: fc.constant('tool'), tool_call_id: fc.constant('call_1'), content: spoken }),
)

const schema: Arbitrary<unknown> = fc.letrec((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom(
      { type: 'string' },
      { type: 'integer', minimum: 1, maximum: 3 },
      { type: 'boolean' },
      { type: 'null' },
      { enum: ['a', 1, null] },
      { type: 'string', pattern: '^[a-c]{2,4}$' },
      { type: 'string', format: 'date-time', minLength: 5 },
      { type: 'number', multipleOf: 0.1, exclusiveMinimum: 0 },
      { $ref: '#' },
      { not: {} },
      {},
    ),
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
    fc.record({
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'toString'), tie('schema'), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
      required: fc.subarray(['a', 'b', 'toString']),
    }),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
  ),
})).schema
const objectSchema = fc.dictionary(fc.constantFrom('a', 'b', 'c'), schema, { maxKeys: 3 }).map((properties) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
}))
const tool = fc.record(
  {
    type: fc.constant('function'),
    function: fc.record(
      {
        name: fc.constantFrom('f', 'g', 'get_weather'),
        description: spoken,
        parameters: objectSchema,
        strict: fc.boolean(),
      },
      { requiredKeys: ['name'] },
    ),
  },
  { requiredKeys: ['type', 'function'] },
)

const optionalFields = {
  stream: fc.boolean(),
  stream_options: fc.constantFrom({ include_usage: true }, { include_usage: false }, {}, null),
  temperature: fc.double({ min: 0, max: 2, noNaN: true }),
  top_p: fc.constantFrom(0, 1, 0.5),
  frequency_penalty: fc.constantFrom(-2, 2, 0),
  presence_penalty: fc.constantFrom(-2, 2, null),
  max_tokens: fc.integer({ min: 1, max: 60 }),
  max_completion_tokens: fc.integer({ min: 1, max: 60 }),
  n: fc.integer({ min: 1, max: 3 }),
  stop: fc.oneof(
    fc.constantFrom('a', '.', 'simulated', ''),
    fc.array(fc.constantFrom('e', ' of ', '}'), { maxLength: 4 }),
  ),
  seed: fc.integer(),
  user: hostileString,
  metadata: fc.dictionary(hostileString, hostileString, { maxKeys: 2 }),
  tools: fc.array(tool, { maxLength: 3 }),
  tool_choice: fc.constantFrom('none', 'auto', 'required', { type: 'function', function: { name: 'f' } }),
  parallel_tool_calls: fc.boolean(),
  response_format: fc.oneof(
    fc.constantFrom({ type: 'text' }, { type: 'json_object' }),
    objectSchema.map((schema) => ({ type: 'json_schema', json_schema: { name: 'x', schema } })),
  ),
  logprobs: fc.boolean(),
  top_logprobs: fc.integer({ min: 0, max: 3 }),
  thinking_enabled: fc.boolean(),
  repetition_penalty: fc.constantFrom(0, 1, 7.5),
  web_search: fc.constantFrom({ enable: true }, { enable: false, other: [1] }, {}),
  reasoning_effort: fc.constantFrom('none', 'low', 'max'),
  unknown_field: anyValue,
}
const MODELS = ['sandbox/general', 'sandbox/compact', 'sandbox/vision', 'sandbox/legacy', 'sandbox/retired', 'general']

/** A request that fits the schema; that its model takes it all is not promised. */
export const goodRequest: Arbitrary<Record<string, unknown>> = fc
  .tuple(
    fc.record(
      {
        model: fc.constantFrom(...MODELS),
        messages: fc.array(message, { minLength: 1, maxLength: 4 }),
        ...optionalFields,
      },
      { requiredKeys: ['model', 'messages'] },
    ),
    // All fields at once would nearly always hold one that is refused.
    fc.array(fc.constantFrom(...Object.keys(optionalFields)), { maxLength: 5 }),
    fc.boolean(),
  )
  .map(([request, kept, stream]) => {
    const few = Object.entries(request).filter(
      ([name]) => name === 'model' || name === 'messages' || kept.includes(name),
    )
    return { ...Object.fromEntries(few), ...(stream ? { stream } : {}) }
  })

const nat = (max: number) => fc.integer({ min: 0, max })
const directives = fc.record(
  {
    tokens: nat(40),
    interval_ms: fc.constantFrom(0, 0, 0, 1),
    first_ms: fc.constantFrom(0, 0, 0, 2),
    status: fc.integer({ min: 400, max: 599 }),
    retry_after: nat(100),
    cut_after: nat(30),
    error_after: nat(30),
    usage: fc.constant('none'),
    finish: fc.constantFrom('content_filter', 'length'),
  },
  { requiredKeys: [] },
)

/** A request whose last user message tells the sandbox how to behave. */
export const toldRequest: Arbitrary<Body> = fc
  .tuple(goodRequest, directives, fc.boolean(), word)
  .map(([request, told, isRefused, question]) => {
    const { status, retry_after, ...rest } = told
    const line = isRefused && status !== undefined ? { ...rest, status, ...(retry_after ? { retry_after } : {}) } : rest
    const words = Object.entries(line).map(([key, value]) => `${key}=${value}`)
    if (words.length === 0) words.push('tokens=3')
    const messages = [
      ...(request.messages as unknown[]),
      { role: 'user', content: `${question}\n@sandbox ${words.join(' ')}` },
    ]
    const {
      tokens: _,
      interval_ms: __,
      first_ms: ___,
      usage: ____,
      finish: _____,
      ...fault
    } = line as Record<string, number>
    return { text: textOf({ ...request, messages }), fault }
  })

type Path = (string | number)[]

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))]
}

/** The value with something else, or nothing, at one place. */
function changed(value: unknown, path: Path, change: (old: unknown) => unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return change(value)
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === key ? changed(item, rest, change) : item))
  const record = value as Record<string, unknown>
  return { ...record, [key]: changed(record[key], rest, change) }
}

/** A request with one to three places changed into anything, emptied, doubled or given a member it should not have. */
export const nearRequest: Arbitrary<Body> = fc
  .tuple(
    goodRequest,
    fc.array(
      fc.record({
        at: fc.nat(),
        how: fc.constantFrom('replace', 'replace', 'remove', 'wrap', 'add', 'double'),
        what: fc.oneof({ weight: 6, arbitrary: anyValue }, { weight: 1, arbitrary: deep }),
        name: hostileString,
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([request, changes]) => {
    let body: unknown = request
    for (const { at, how, what, name } of changes) {
      const paths = pathsOf(body)
      body = changed(body, paths[at % paths.length] ?? [], (old) => {
        if (how === 'remove') return undefined
        if (how === 'wrap') return [old]
        if (how === 'double') return Array.isArray(old) ? [...old, ...old] : old
        if (how === 'add' && typeof old === 'object' && old !== null && !Array.isArray(old)) {
          return Object.defineProperty({ ...old }, name, { value: what, enumerable: true })
        }
        return what
      })
    }
    return { text: body === undefined ? '' : textOf(body) }
  })

/** Text that may be no JSON at all: cut, spliced, doubled, raw. */
export const brokenText: Arbitrary<Body> = fc.oneof(
  fc.tuple(goodRequest, fc.nat()).map(([request, at]) => {
    const text = textOf(request)
    return { text: text.slice(0, at % text.length) }
  }),
  fc.tuple(goodRequest, fc.nat(), hostileString).map(([request, at, more]) => {
    const text = textOf(request)
    const place = at % text.length
    return { text: text.slice(0, place) + more + text.slice(place) }
  }),
  // The same name twice, and names that a prototype would take.
  fc
    .tuple(goodRequest, fc.constantFrom('__proto__', 'constructor', 'messages', 'model'), anyValue)
    .map(([request, name, value]) => ({
      text: `{${JSON.stringify(name)}:${textOf(value)},${textOf(request).slice(1)}`,
    })),
  hostileString.map((text) => ({ text })),
  fc
    .constantFrom(
      'NaN',
      '-',
      '[',
      '{',
      '{"model"',
      '{"model":undefined}',
      "{'a':1}",
      '1 2',
      '"\\ud800"',
      '\ufeff{}',
      '[]',
      'null',
    )
    .map((text) => ({ text })),
)
