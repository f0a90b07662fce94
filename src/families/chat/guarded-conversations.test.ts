/** Redaction and restoring over generated conversations with tools: nothing private is sent, and all of it comes back. */
import { describe, expect, it } from 'bun:test'
import type { Call } from '../../calls/call.ts'
import { CallGuards } from '../../calls/guards/call-guards.ts'
import { createGuard } from '../../calls/guards/guard.ts'
import type { ChatChunk, ChatRequest, Message } from '../../protocols/shared/canonical.ts'
import { guardedAnswer, guardedRequest } from './guarded.ts'
import { GuardedChunks } from './guarded-stream.ts'

const CONVERSATIONS = 1_000
const PRIVATE = createGuard('private', { kind: 'redact', restore: true })

/** The same numbers in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const NAMES = ['ann', 'bob.b', 'zoë', "o'neil", 'x_1', 'mary-jane']
const OTHERS = ['4111 1111 1111 1111', '5500-0000-0000-0004', 'DE89370400440532013000', '+49 30 1234567', '123-45-6789']
const WORDS = [
  'hello',
  '[note]',
  'say "no"',
  'line\nbreak',
  'tab\there',
  '😀',
  '[EMAIL_',
  'x@y',
  '{"a":1}',
  '\\',
  '[',
  ']',
]

type Random = ReturnType<typeof numbers>
const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T

function privateValue(random: Random): string {
  if (random(3) > 0)
    return `${pick(random, ['ann', 'bob.b', 'x_1', 'mary-jane'])}${random(40)}@example.${pick(random, ['com', 'org'])}`
  return pick(random, OTHERS)
}

const textOf = (random: Random): string =>
  Array.from({ length: 1 + random(8) }, () =>
    random(2) ? pick(random, [...WORDS, ...NAMES]) : privateValue(random),
  ).join(' ; ')

function conversationOf(random: Random): ChatRequest {
  const messages: Message[] = [{ role: 'system', content: textOf(random) }]
  for (let turn = 0; turn <= random(4); turn++) {
    messages.push({ role: 'user', content: random(2) ? textOf(random) : [{ type: 'text', text: textOf(random) }] })
    const id = `call_${turn}`
    const call = { name: 'send', arguments: JSON.stringify({ to: privateValue(random), text: textOf(random) }) }
    messages.push({ role: 'assistant', content: textOf(random), tool_calls: [{ id, function: call }] })
    messages.push({ role: 'tool', tool_call_id: id, content: JSON.stringify({ found: [textOf(random)] }) })
  }
  return { model: 'm', messages, user: privateValue(random) }
}

const textsIn = ({ messages }: ChatRequest): string[] =>
  messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? [content]
      : (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])),
  )
const argumentsIn = ({ messages }: ChatRequest): string[] =>
  messages.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => call.function.arguments))

const chunkOf = (delta: ChatChunk['choices'][number]['delta'], finish_reason: 'stop' | null = null): ChatChunk => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})

/** Pieces of at most seven characters, which cut placeholders and escapes anywhere. */
function* piecesOf(text: string, random: Random): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const length = 1 + random(7)
    yield text.slice(at, at + length)
    at += length
  }
}

async function streamed(guards: CallGuards, content: string, args: string, random: Random) {
  async function* source(): AsyncGenerator<ChatChunk[]> {
    for (const piece of piecesOf(content, random)) yield [chunkOf({ content: piece })]
    for (const piece of piecesOf(args, random))
      yield [chunkOf({ tool_calls: [{ index: 0, function: { arguments: piece } }] })]
    yield [chunkOf({}, 'stop')]
  }
  const out = { content: '', args: '' }
  for await (const batch of new GuardedChunks(source(), { guards, meter: { count() {} } }))
    for (const { choices } of batch)
      for (const { delta } of choices) {
        out.content += delta.content ?? ''
        for (const call of delta.tool_calls ?? []) out.args += call.function?.arguments ?? ''
      }
  return out
}

const guardsOf = () =>
  new CallGuards([PRIVATE], {
    call: { signal: new AbortController().signal } as Call,
    ask: () => Promise.reject(new Error('asked')),
    results: [],
  })

describe('a conversation with a guard that redacts and restores', () => {
  it(`keeps every value from the provider and gets it back, in ${CONVERSATIONS} conversations, whole and streamed`, async () => {
    for (let seed = 1; seed <= CONVERSATIONS; seed++) {
      const random = numbers(seed)
      const given = conversationOf(random)
      const before = JSON.stringify(given)
      const guards = guardsOf()
      const { request, texts } = guardedRequest(given)
      await guards.checkInput(texts)
      const sent = JSON.stringify(request)
      expect(sent).not.toMatch(/@example|4111|5500-|DE89|1234567|123-45/)
      expect(JSON.stringify(given)).toBe(before)
      for (const text of argumentsIn(request)) expect(() => JSON.parse(text)).not.toThrow()
      // The provider repeats all that it was sent.
      const content = textsIn(request).join('\n')
      const [args = '{}'] = argumentsIn(request)
      const expected = { content: textsIn(given).join('\n'), args: argumentsIn(given)[0] ?? '{}' }
      const answer = await guardedAnswer(
        guards,
        {
          id: 'c',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [
            {
              index: 0,
              message: {
                role: 'assistant',
                content,
                tool_calls: [{ id: 'c', function: { name: 'send', arguments: args } }],
              },
              finish_reason: 'stop',
            },
          ],
        },
        { family: 'chatcompat', request },
      )
      const message = answer.choices[0]?.message
      expect(message?.content).toBe(expected.content)
      expect(JSON.parse(message?.tool_calls?.[0]?.function.arguments ?? '')).toEqual(JSON.parse(expected.args))
      const stream = await streamed(guards, content, args, random)
      expect(stream.content).toBe(expected.content)
      expect(JSON.parse(stream.args)).toEqual(JSON.parse(expected.args))
    }
  })

  it('gives a longer conversation the placeholders of its begin', async () => {
    const random = numbers(7)
    const { messages, ...rest } = conversationOf(random)
    const first = guardedRequest({ ...rest, messages })
    await guardsOf().checkInput(first.texts)
    const longer = guardedRequest({ ...rest, messages: [...messages, { role: 'user', content: 'new@example.com' }] })
    await guardsOf().checkInput(longer.texts)
    expect(longer.request.messages.slice(0, messages.length)).toEqual(first.request.messages)
  })
})
