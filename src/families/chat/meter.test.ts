import { expect, test } from 'bun:test'
import type { ChatChunk, Delta } from '../../protocols/shared/canonical.ts'
import { usageFrom } from '../../spec/usage.ts'
import { createMeter } from './meter.ts'

/** Counts words, so that a test can. */
const tokenizer = {
  count: async (texts: string[]) => texts.map((text) => text.split(/\s+/).filter(Boolean).length),
  close() {},
}

function meterOf() {
  return createMeter({ model: 'p/m', messages: [{ role: 'user', content: 'one two three' }] }, tokenizer)
}

const says = (delta: Delta, usage?: ChatChunk['usage']): ChatChunk => ({
  id: '',
  object: 'chat.completion.chunk',
  created: 0,
  model: '',
  choices: [{ index: 0, delta }],
  ...(usage ? { usage } : {}),
})

test('the last count that the provider reported is the usage', async () => {
  const meter = meterOf()
  meter.count([says({ content: 'a' }, usageFrom({ input: 9, output: 1 }))])
  meter.count([says({ content: ' b' }, usageFrom({ input: 9, output: 2 }))])
  expect(await meter.usage()).toEqual(usageFrom({ input: 9, output: 2 }))
})

test('without a count the usage is estimated from the whole response and marked as estimated', async () => {
  const meter = meterOf()
  meter.count([says({ reasoning_content: 'let me ' }), says({ content: 'think about ' })])
  meter.count([says({ tool_calls: [{ index: 0, function: { name: 'f ', arguments: '{} x' } }] })])
  // role and three words in; "let me think about f {} x" out
  expect(await meter.usage()).toEqual(usageFrom({ input: 4, output: 7, estimated: true }))
})

test('counts from the beginning of a response that broke off do not cover the later output', async () => {
  const meter = meterOf()
  meter.count([says({ content: 'one ' }, usageFrom({ input: 9, output: 1 })), says({ content: 'two three four' })])
  expect(await meter.usage()).toEqual(usageFrom({ input: 9, output: 4, estimated: true }))
})

test('an image is delivered, and not counted', () => {
  const meter = meterOf()
  meter.count([says({ role: 'assistant' })])
  expect(meter.hasDelivered()).toBe(false)
  meter.count([says({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,aWNvbg==' } }] })])
  expect([meter.hasDelivered(), meter.hasCounted()]).toEqual([true, false])
})
