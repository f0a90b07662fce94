import { expect, test } from 'bun:test'
import type { AccessNote } from '../http/context.ts'
import type { ChatChunk, Delta } from '../spec/chat-completion.ts'
import { usageFrom } from '../spec/usage.ts'
import { createMeter, type RecordUse } from './meter.ts'

/** Counts words, so that a test can. */
const tokenizer = {
  count: async (texts: string[]) => texts.map((text) => text.split(/\s+/).filter(Boolean).length),
  close() {},
}

function meterOf() {
  const records: Parameters<RecordUse>[0][] = []
  const note: AccessNote = {}
  const request = { model: 'p/m', messages: [{ role: 'user' as const, content: 'one two three' }] }
  const meter = createMeter({ request, tokenizer, note, record: (use) => records.push(use) })
  return { meter, note, records }
}

const says = (delta: Delta, usage?: ChatChunk['usage']): ChatChunk => ({
  id: '',
  object: 'chat.completion.chunk',
  created: 0,
  model: '',
  choices: [{ index: 0, delta }],
  ...(usage ? { usage } : {}),
})

test('the last count that the upstream gave is the measure', async () => {
  const { meter, note, records } = meterOf()
  meter.count([says({ content: 'a' }, usageFrom({ input: 9, output: 1 }))])
  meter.count([says({ content: ' b' }, usageFrom({ input: 9, output: 2 }))])
  expect(await meter.usage()).toEqual(usageFrom({ input: 9, output: 2 }))
  await meter.settle({ error: false })
  expect(records).toEqual([{ input_tokens: 9, output_tokens: 2, error: false, estimated: false }])
  expect(note).toEqual({ input_tokens: 9, output_tokens: 2 })
})

test('without a count it is estimated from all that was said, and marked', async () => {
  const { meter, note, records } = meterOf()
  meter.count([says({ reasoning_content: 'let me ' }), says({ content: 'think about ' })])
  meter.count([says({ tool_calls: [{ index: 0, function: { name: 'f ', arguments: '{} x' } }] })])
  await meter.settle({ error: true })
  // role and three words in; "let me think about f {} x" out
  expect(records).toEqual([{ input_tokens: 4, output_tokens: 7, error: true, estimated: true }])
  expect(note.estimated).toBe(true)
})

test('a request is recorded once', async () => {
  const { meter, records } = meterOf()
  await Promise.all([meter.settle({ error: false }), meter.settle({ error: true })])
  expect(records.length).toBe(1)
})

test('a refused request costs nothing but counts', async () => {
  const { meter, records } = meterOf()
  await meter.settle({ error: true, refused: true })
  expect(records).toEqual([{ input_tokens: 0, output_tokens: 0, error: true, estimated: false }])
})

test('counts from the beginning of an answer that broke off are no measure of what was said since', async () => {
  const { meter, records } = meterOf()
  meter.count([says({ content: 'one ' }, usageFrom({ input: 9, output: 1 })), says({ content: 'two three four' })])
  await meter.settle({ error: true })
  expect(records).toEqual([{ input_tokens: 9, output_tokens: 4, error: true, estimated: true }])
})
