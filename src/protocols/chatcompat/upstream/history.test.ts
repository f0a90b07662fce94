import { expect, test } from 'bun:test'
import type { Message } from '../../canonical.ts'
import { plainHistory } from './history.ts'

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } } as const
const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'look', arguments: '{}' } })

test('a conversation that any vendor knows is handed on as it is', () => {
  const messages: Message[] = [
    { role: 'user', content: [{ type: 'text', text: 'Look' }, IMAGE] },
    { role: 'assistant', content: null, reasoning_content: 'Hm', tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'a cat' },
  ]
  expect(plainHistory(messages)).toBe(messages)
})

test('what another family of vendors has signed is left out, with the reasoning that it signs', () => {
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
  expect(messages[0]).toHaveProperty('reasoning_details') // the request itself is left as it was
})

test('reasoning that nobody has signed is handed on as words, as vendors that call tools want it back', () => {
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

test('images that a model of another kind made are left out', () => {
  const messages: Message[] = [{ role: 'assistant', content: 'Here.', images: [IMAGE] }]
  expect(plainHistory(messages)).toEqual([{ role: 'assistant', content: 'Here.' }])
})

test("images of tools' results follow in the user's name, after the results of all parallel calls", () => {
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

test('a file by its address is refused by its place', () => {
  const file = { type: 'file', file: { file_url: 'https://files.example/a.pdf' } } as const
  const messages: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'Read' }, file] }]
  expect(() => plainHistory(messages)).toThrow('only as data')
  try {
    plainHistory(messages)
  } catch (error) {
    expect(error).toMatchObject({ detail: { param: 'messages[0].content[1].file.file_url' } })
  }
})
