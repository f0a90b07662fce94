import { expect, test } from 'bun:test'
import type { Message } from '../../shared/canonical.ts'
import { plainHistory } from './request.ts'

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } } as const
const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'look', arguments: '{}' } })

test('plainHistory returns a conversation without extensions unchanged', () => {
  const messages: Message[] = [
    { role: 'user', content: [{ type: 'text', text: 'Look' }, IMAGE] },
    { role: 'assistant', content: null, reasoning_content: 'Hm', tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'a cat' },
  ]
  expect(plainHistory(messages)).toBe(messages)
})

test('plainHistory drops content that another vendor signed, with its reasoning', () => {
  const opaque = { origin: 'messages-compat', value: 'sig' } as const
  const messages: Message[] = [
    {
      role: 'assistant',
      content: 'Yes',
      reasoning_content: 'Hm',
      reasoning_details: [{ text: 'Hm', opaque }],
      tool_calls: [{ ...call('a'), opaque }],
    },
  ]
  expect(plainHistory(messages)).toEqual([{ role: 'assistant', content: 'Yes', tool_calls: [call('a')] }])
  expect(messages[0]).toHaveProperty('reasoning_details') // the request itself is unchanged
})

test('plainHistory keeps unsigned reasoning as text, which providers with tools need again', () => {
  const opaque = { origin: 'messages-compat', value: 'sig' } as const
  const messages: Message[] = [
    {
      role: 'assistant',
      content: null,
      reasoning_content: 'AhHm',
      reasoning_details: [{ text: 'Ah', opaque }, { text: 'Hm' }, { opaque }],
      tool_calls: [call('a')],
    },
  ]
  expect(plainHistory(messages)).toEqual([
    { role: 'assistant', content: null, reasoning_content: 'Hm', tool_calls: [call('a')] },
  ])
})

test('plainHistory drops images that a model of another API generated', () => {
  const messages: Message[] = [{ role: 'assistant', content: 'Here.', images: [IMAGE] }]
  expect(plainHistory(messages)).toEqual([{ role: 'assistant', content: 'Here.' }])
})

test('plainHistory moves images of tool results to a user message after the results of all parallel calls', () => {
  const messages: Message[] = [
    { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
    { role: 'tool', tool_call_id: 'a', is_error: false, content: [{ type: 'text', text: 'one' }, IMAGE] },
    { role: 'tool', tool_call_id: 'b', content: [IMAGE] },
    { role: 'user', content: 'Well?' },
  ]
  expect(plainHistory(messages)).toEqual([
    { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
    { role: 'tool', tool_call_id: 'a', content: 'one' },
    { role: 'tool', tool_call_id: 'b', content: '' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Other output of the tool call a:' },
        IMAGE,
        { type: 'text', text: 'Other output of the tool call b:' },
        IMAGE,
      ],
    },
    { role: 'user', content: 'Well?' },
  ])
  expect(plainHistory(messages.slice(0, 2)).at(-1)?.role).toBe('user')
})

test('plainHistory refuses a file by URL with its place', () => {
  const file = { type: 'file', file: { file_url: 'https://files.example/a.pdf' } } as const
  const messages: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'Read' }, file] }]
  expect(() => plainHistory(messages)).toThrow('only as data')
  try {
    plainHistory(messages)
  } catch (error) {
    expect(error).toMatchObject({ detail: { param: 'messages[0].content[1].file.file_url' } })
  }
})
