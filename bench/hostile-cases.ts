/** Bodies made to keep a gateway busy: each a shape that repeats one small piece as often as the size asks for. */

/** `body` makes the body when it is wanted: all of them at the largest size would not fit into memory. */
export type HostileCase = { name: string; path: string; body(): string }

/** How many pieces of one text fit into a body of `bytes`. */
const fill = (piece: string, bytes: number, separator = ','): string => {
  const count = Math.max(1, Math.floor(bytes / (piece.length + separator.length)))
  return `${piece}${(separator + piece).repeat(count - 1)}`
}

/** An object of so many members with different names, counted from `first`. */
function members(bytes: number, most = Number.POSITIVE_INFINITY, first = 0): string {
  const out: string[] = []
  for (let size = 0; size < bytes && out.length < most; ) {
    const member = `"k${(first + out.length).toString(36)}":0`
    out.push(member)
    size += member.length + 1
  }
  return `{${out.join(',')}}`
}

function objects(bytes: number, most: number): string {
  const out: string[] = []
  for (let size = 0; size < bytes; size += out.at(-1)?.length ?? 0) out.push(members(bytes, most, out.length * most))
  return `[${out.join(',')}]`
}

const nested = (open: string, close: string, bytes: number, depth: number): string => {
  const tower = open.repeat(depth) + close.repeat(depth)
  return fill(tower, bytes)
}

/** JSON values that are large in number, in depth or in names, by name; `bytes` long. */
const VALUES: Record<string, (bytes: number) => string> = {
  'empty arrays': (bytes) => `[${fill('[]', bytes)}]`,
  'empty objects': (bytes) => `[${fill('{}', bytes)}]`,
  'one array in another, 250 deep': (bytes) => `[${nested('[', ']', bytes, 250)}]`,
  'one array in another, without end': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'one object in another, 250 deep': (bytes) => `[${fill(`${'{"a":'.repeat(250)}1${'}'.repeat(250)}`, bytes)}]`,
  'different names': (bytes) => members(bytes),
  'different names, 9,000 to an object': (bytes) => objects(bytes, 9_000),
  'different names, 10 to an object': (bytes) => objects(bytes, 10),
  'one name many times': (bytes) => `{${fill('"a":0', bytes)}}`,
  '__proto__ many times': (bytes) => `{${fill('"__proto__":{}', bytes)}}`,
  'small integers': (bytes) => `[${fill('1', bytes)}]`,
  'long numbers': (bytes) => `[${fill(`1${'0'.repeat(300)}.5e-300`, bytes)}]`,
  'one endless number': (bytes) => '9'.repeat(bytes),
  'empty strings': (bytes) => `[${fill('""', bytes)}]`,
  'one string of escapes': (bytes) => `"${'\\u0041\\"\\n'.repeat(bytes / 10)}"`,
  'one string of backslashes': (bytes) => `"${'\\\\'.repeat(bytes / 2)}"`,
  'one string of brackets': (bytes) => `"${'[{'.repeat(bytes / 2)}"`,
  'one plain string': (bytes) => `"${'a'.repeat(bytes)}"`,
  'one string of blanks': (bytes) => `"${' '.repeat(bytes)}"`,
  'one string of emoji': (bytes) => `"${'😀'.repeat(bytes / 4)}"`,
  'blanks between tokens': (bytes) => `[${' '.repeat(bytes)}1]`,
}

const message = '{"role":"user","content":"x"}'
const messages = `[${message}]`

/** Where a dialect of chat can hold an array of anything, each with its list of pieces. */
const CHAT: { path: string; body(field: string, value: string): string; lists: Record<string, string[]> }[] = [
  {
    path: '/v1/chat/completions',
    body: (field, value) => `{"model":"MODEL","messages":${messages},"${field}":${value}}`,
    lists: {
      messages: [
        message,
        '{}',
        '[]',
        '0',
        '{"role":"user","content":[{"type":"text","text":""}]}',
        '{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}',
        '{"role":"tool","tool_call_id":"a","content":"x"}',
        '{"role":"system","content":"x"}',
        '{"role":"user","content":null}',
      ],
      tools: ['{"type":"function","function":{"name":"f"}}', '{}', '{"type":"custom","custom":{"name":"f"}}'],
      functions: ['{"name":"f"}', '{}'],
      stop: ['"x"', '{}'],
      logit_bias: ['{}'],
      modalities: ['"text"', '{}'],
    },
  },
  {
    path: '/v1/messages',
    body: (field, value) => `{"model":"MODEL","max_tokens":9,"messages":${messages},"${field}":${value}}`,
    lists: {
      messages: [
        message,
        '{}',
        '{"role":"user","content":[{"type":"text","text":"x"}]}',
        '{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"x"}]}',
        '{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}]}',
        '{"role":"user","content":null}',
      ],
      system: ['{"type":"text","text":"x"}', '{}'],
      tools: ['{"name":"f","input_schema":{}}', '{}', '{"type":"bash_20250124","name":"bash"}'],
      stop_sequences: ['"x"', '{}'],
      mcp_servers: ['{}'],
    },
  },
  {
    path: '/v1/responses',
    body: (field, value) => `{"model":"MODEL","store":false,"input":"x","${field}":${value}}`,
    lists: {
      input: [
        message,
        '{}',
        '{"role":"user","content":[{"type":"input_text","text":"x"}]}',
        '{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}',
        '{"type":"function_call_output","call_id":"a","output":"x"}',
        '{"type":"reasoning","summary":[]}',
        '{"type":"item_reference","id":"msg_x"}',
        '{"type":"web_search_call","id":"x"}',
        '{"type":"unknown"}',
        '{"role":"user","content":null}',
      ],
      tools: ['{"type":"function","name":"f"}', '{}', '{"type":"web_search"}', '{"type":"custom","name":"f"}'],
      include: ['"reasoning.encrypted_content"', '{}'],
    },
  },
  {
    path: '/v1beta/models/MODEL:generateContent',
    body: (field, value) => `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"${field}":${value}}`,
    lists: {
      contents: [
        '{"role":"user","parts":[{"text":"x"}]}',
        '{}',
        '{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}',
        '{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}',
        '{"role":"user","parts":[{"executableCode":{}}]}',
      ],
      tools: ['{"functionDeclarations":[{"name":"f"}]}', '{}', '{"googleSearch":{}}'],
      safetySettings: ['{}', '{"category":"x","threshold":"y"}'],
    },
  },
]

/** The content of one message as a list of parts. */
const PARTS: Record<string, { pieces: string[]; body(parts: string): string }> = {
  '/v1/chat/completions': {
    pieces: ['{"type":"text","text":""}', '{}', '[]', '0', '{"type":"image_url","image_url":{"url":"data:,"}}'],
    body: (parts) => `{"model":"MODEL","messages":[{"role":"user","content":[${parts}]}]}`,
  },
  '/v1/messages': {
    pieces: ['{"type":"text","text":"x"}', '{}', '[]', '0'],
    body: (parts) => `{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":[${parts}]}]}`,
  },
  '/v1/responses': {
    pieces: ['{"type":"input_text","text":"x"}', '{}', '[]', '0'],
    body: (parts) => `{"model":"MODEL","store":false,"input":[{"role":"user","content":[${parts}]}]}`,
  },
  '/v1beta/models/MODEL:generateContent': {
    pieces: ['{"text":"x"}', '{}', '[]', '0', '{"functionCall":{"name":"f"}}'],
    body: (parts) => `{"contents":[{"role":"user","parts":[${parts}]}]}`,
  },
}

/** All bodies of about so many bytes for one model of chat. */
export function chatCases(model: string, bytes: number): HostileCase[] {
  const cases: HostileCase[] = []
  const add = (path: string, name: string, body: () => string) =>
    cases.push({ name, path: path.replace('MODEL', model), body: () => body().replace('MODEL', model) })
  for (const { path, body, lists } of CHAT) {
    for (const [name, value] of Object.entries(VALUES))
      add(path, `metadata: ${name}`, () => body('metadata', value(bytes)))
    for (const name of ['empty arrays', 'different names, 10 to an object', 'one object in another, 250 deep']) {
      const value = () => VALUES[name]?.(bytes) ?? ''
      add(path, `tools of ${name}`, () => body('tools', value()))
      add(path, `provider_options: ${name}`, () => body('provider_options', value()))
    }
    const prompt = (name: string) => () => body('x', '0').replace('"x"', () => VALUES[name]?.(bytes) ?? '')
    add(path, 'a prompt of escapes', prompt('one string of escapes'))
    add(path, 'a prompt of letters', prompt('one plain string'))
    add(path, 'a prompt of blanks', prompt('one string of blanks'))
    add(path, 'a body of unknown members', () => body('x', '0').replace(/\{/, `${members(bytes).slice(0, -1)},`))
    for (const [field, pieces] of Object.entries(lists)) {
      for (const piece of pieces) add(path, `${field} of ${piece}`, () => body(field, `[${fill(piece, bytes)}]`))
    }
  }
  for (const [path, { pieces, body }] of Object.entries(PARTS)) {
    for (const piece of pieces) add(path, `parts of ${piece}`, () => body(fill(piece, bytes)))
  }
  return cases
}

/** The same for the questions of one answer: embeddings, rerank, counts, and orders. */
export function otherCases(bytes: number): HostileCase[] {
  const cases: HostileCase[] = []
  const lists: [path: string, name: string, body: (list: string) => string, pieces: string[]][] = [
    ['/v1/embeddings', 'input', (list) => `{"model":"chatcompat/embedding","input":[${list}]}`, ['"x"', '""', '1', '[1]', '{}', '[]', '[1,2,3,4,5,6,7,8,9]']],
    ['/v1/rerank', 'documents', (list) => `{"model":"chatcompat/rerank","query":"x","documents":[${list}]}`, ['"x"', '""', '{"text":"x"}', '{}', '0']],
    ['/v1beta/models/chatcompat/embedding:batchEmbedContents', 'requests', (list) => `{"requests":[${list}]}`, ['{"content":{"parts":[{"text":"x"}]}}', '{}', '{"content":{"parts":[]}}']],
    ['/v1/messages/count_tokens', 'messages', (list) => `{"model":"chatcompat/general","messages":[${list}]}`, [message, '{}']],
    ['/v1/responses/input_tokens', 'input', (list) => `{"model":"chatcompat/general","input":[${list}]}`, [message, '{}']],
    ['/v1beta/models/chatcompat/general:countTokens', 'contents', (list) => `{"contents":[${list}]}`, ['{"parts":[{"text":"x"}]}', '{}']],
    ['/v1/images/generations', 'x', (list) => `{"model":"sandbox/image","prompt":"x","x":[${list}]}`, ['[]', '{}']],
    ['/v1/video/generations', 'metadata', (list) => `{"model":"sandbox/text-to-video","prompt":"x","metadata":{"sandbox":[${list}]}}`, ['[]', '{}', '"x"']],
    ['/v1/video/generations', 'images', (list) => `{"model":"sandbox/text-to-video","prompt":"x","images":[${list}]}`, ['"data:,"', '{}']],
    ['/v1/3d/generations', 'images', (list) => `{"model":"sandbox/text-to-3d","prompt":"x","images":[${list}]}`, ['"data:,"', '{}']],
  ] // biome-ignore format: a table
  for (const [path, name, body, pieces] of lists) {
    for (const piece of pieces) {
      cases.push({ path, name: `${name} of ${piece}`, body: () => body(fill(piece, bytes)) })
    }
  }
  for (const [name, value] of Object.entries(VALUES)) {
    cases.push({
      path: '/v1/embeddings',
      name: `x: ${name}`,
      body: () => `{"model":"chatcompat/embedding","input":"x","x":${value(bytes)}}`,
    })
    cases.push({
      path: '/v1/rerank',
      name: `x: ${name}`,
      body: () => `{"model":"chatcompat/rerank","query":"x","documents":["x"],"x":${value(bytes)}}`,
    })
    cases.push({
      path: '/v1/video/generations',
      name: `metadata: ${name}`,
      body: () => `{"model":"sandbox/text-to-video","prompt":"x","metadata":{"sandbox":${value(bytes)}}}`,
    })
  }
  for (const [name, body] of Object.entries(BROKEN))
    cases.push({ path: '/v1/chat/completions', name, body: () => body(bytes) })
  return cases
}

/** What is no JSON, and is found to be none only near its end. */
const BROKEN: Record<string, (bytes: number) => string> = {
  'not JSON: an array that breaks off': (bytes) => `[${fill('[]', bytes)}`,
  'not JSON: a string that breaks off': (bytes) => `{"a":"${'a'.repeat(bytes)}`,
  'not JSON: open brackets': (bytes) => '['.repeat(bytes),
  'not JSON: quotes': (bytes) => '"'.repeat(bytes),
  'not JSON: backslashes': (bytes) => `"${'\\'.repeat(bytes)}`,
}
