/** Writes random whole answers of providers as JSON text: common ones, odd ones and damaged ones. */

type Random = {
  next(): number
  below(limit: number): number
  chance(share: number): boolean
  pick<T>(values: readonly T[]): T
}

/** Numbers that look random and are the same in each run (mulberry32). */
function randomFrom(seed: number): Random {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    chance: (share) => next() < share,
    pick: (values) => values[below(values.length)] as (typeof values)[number],
  }
}

/** Values as JSON text, which a parser could not give back: escapes, spellings of numbers, members twice. */
const STRINGS = [
  '""',
  '"Hi"',
  '"a \\"b\\" \\\\"',
  '"\\u0041\\n"',
  '"ü – 你好 🙂"',
  '"\\ud83d\\ude42"',
  '"null"',
  '"stop"',
  '"}]{[,:"',
]
const NUMBERS = ['0', '7', '42', '-1', '1.0', '1e2', '9007199254740993', '123456789012345678901234567890', '0.1', '-0']
const CONSTANTS = ['null', 'true', 'false', '{}', '[]', '{"a":{"b":[1,null,{"c":"d"}]}}', '[[[]],{"id":1}]']
const NAMES = ['id', 'model', 'usage', 'extra', '\\u0069d', 'choices', 'a\\"b', '__proto__', '1', '']

/** A writer of JSON text: its members are mostly those that are given, sometimes others, missing ones and wrong ones. */
function writerOf(random: Random, oddity: number) {
  const space = () => (random.chance(0.1) ? random.pick([' ', '\n', '\t', '\r\n  ']) : '')
  const any = () => random.pick([...STRINGS, ...NUMBERS, ...CONSTANTS])
  const object = (members: Record<string, string>): string => {
    const entries = Object.entries(members).filter(() => !random.chance(oddity / 3))
    const written = entries.map(([name, value]) => [name, random.chance(oddity / 3) ? any() : value])
    while (random.chance(oddity)) written.splice(random.below(written.length + 1), 0, [random.pick(NAMES), any()])
    const texts = written.map(([name, value]) => `${space()}"${name}"${space()}:${space()}${value}${space()}`)
    return `{${texts.join(',')}${written.length === 0 ? space() : ''}}`
  }
  const list = (items: string[]): string => `[${space()}${items.join(`${space()},${space()}`)}${space()}]`
  return {
    object,
    list,
    any,
    text: () => random.pick(STRINGS),
    number: () => random.pick(NUMBERS),
    /** The value, or null, which many servers send for what they lack. */
    optional: (value: string) => (random.chance(0.3) ? 'null' : value),
    several: (make: () => string, most: number) => list(Array.from({ length: random.below(most + 1) }, make)),
  }
}

type Writer = ReturnType<typeof writerOf>

/** Sometimes cuts, deepens or damages a text. */
function damaged(text: string, random: Random): string {
  if (!random.chance(0.05)) return text
  const at = random.below(text.length + 1)
  const damage = random.pick(['cut', 'insert', 'deepen', 'list'])
  if (damage === 'cut') return text.slice(0, at)
  if (damage === 'insert')
    return text.slice(0, at) + random.pick(['"', '\\', ',', '}', '\u0001', 'x', '\ufffd']) + text.slice(at)
  if (damage === 'list') return `[${text}]`
  return text.replace(/^\{/, `{"deep":${'['.repeat(300)}${']'.repeat(300)},`)
}

const usageText = (w: Writer) =>
  w.object({
    prompt_tokens: w.number(),
    completion_tokens: w.number(),
    total_tokens: w.number(),
    prompt_tokens_details: w.optional(w.object({ cached_tokens: w.number(), audio_tokens: '0' })),
    completion_tokens_details: w.optional(w.object({ reasoning_tokens: w.number() })),
    cost: w.number(),
    is_byok: 'false',
  })

export function completionText(w: Writer, random: Random): string {
  const call = () =>
    w.object({
      index: '0',
      id: w.text(),
      type: '"function"',
      function: w.object({ name: w.text(), arguments: random.chance(0.3) ? '{"n":9007199254740993}' : w.text() }),
    })
  const message = () =>
    w.object({
      role: '"assistant"',
      content: random.chance(0.2)
        ? w.several(() => w.object({ type: '"text"', text: w.text() }), 2)
        : w.optional(w.text()),
      refusal: w.optional(w.text()),
      annotations: w.several(() => w.object({ type: '"url_citation"', url_citation: w.object({ url: w.text() }) }), 2),
      ...(random.chance(0.3) ? { tool_calls: w.several(call, 2), function_call: 'null' } : {}),
      ...(random.chance(0.3) ? { reasoning_content: w.optional(w.text()), reasoning: w.optional(w.text()) } : {}),
    })
  const choice = () =>
    w.object({
      index: w.number(),
      [random.chance(0.05) ? 'delta' : 'message']: message(),
      logprobs: w.optional(w.object({ content: '[]' })),
      finish_reason: random.pick(['"stop"', '"length"', '"tool_calls"', '"eos"', 'null', '"SAFETY"']),
    })
  return w.object({
    id: w.text(),
    object: '"chat.completion"',
    created: w.number(),
    model: w.text(),
    system_fingerprint: w.optional(w.text()),
    choices: w.several(choice, 2),
    usage: random.chance(0.9) ? usageText(w) : 'null',
    ...(random.chance(0.03) ? { error: w.any() } : {}),
  })
}

export const messageText = (w: Writer, random: Random): string =>
  w.object({
    id: w.text(),
    type: random.chance(0.05) ? '"error"' : '"message"',
    role: '"assistant"',
    model: w.text(),
    content: w.several(
      () =>
        w.object({
          type: random.pick(['"text"', '"thinking"', '"tool_use"']),
          text: w.text(),
          thinking: w.text(),
          signature: w.text(),
          id: w.text(),
          name: w.text(),
          input: w.any(),
        }),
      3,
    ),
    stop_reason: w.optional(random.pick(['"end_turn"', '"tool_use"', '"max_tokens"'])),
    stop_sequence: w.optional(w.text()),
    usage: w.object({
      input_tokens: w.number(),
      cache_read_input_tokens: w.optional(w.number()),
      cache_creation_input_tokens: w.optional(w.number()),
      output_tokens: w.number(),
    }),
  })

export const contentsText = (w: Writer, random: Random): string =>
  w.object({
    candidates: w.several(
      () =>
        w.object({
          content: w.object({ role: '"model"', parts: w.several(() => w.object({ text: w.text() }), 2) }),
          finishReason: w.optional('"STOP"'),
          index: w.number(),
        }),
      2,
    ),
    usageMetadata: w.object({
      promptTokenCount: w.number(),
      candidatesTokenCount: w.optional(w.number()),
      thoughtsTokenCount: w.optional(w.number()),
      totalTokenCount: w.number(),
    }),
    modelVersion: w.text(),
    ...(random.chance(0.1) ? { promptFeedback: w.object({ blockReason: w.text() }) } : {}),
  })

export const responseText = (w: Writer, random: Random): string =>
  w.object({
    id: w.text(),
    object: '"response"',
    created_at: w.number(),
    status: random.pick(['"completed"', '"incomplete"', '"failed"', '"in_progress"']),
    model: w.text(),
    output: w.several(
      () =>
        w.object({
          id: w.text(),
          type: '"message"',
          role: '"assistant"',
          content: w.several(() => w.object({ type: '"output_text"', text: w.text(), annotations: '[]' }), 2),
        }),
      2,
    ),
    usage: w.object({ input_tokens: w.number(), output_tokens: w.number(), total_tokens: w.number() }),
    instructions: w.optional(w.text()),
  })

/** Random bodies, the same in each run. Half of them have only the members that a provider documents. */
export function randomBodies(count: number, write: (w: Writer, random: Random) => string): string[] {
  return Array.from({ length: count }, (_, index) => {
    const random = randomFrom(index + 1)
    const oddity = random.chance(0.5) ? 0 : 0.2
    return damaged(write(writerOf(random, oddity), random), random)
  })
}
