import { describe, expect, it } from 'bun:test'
import type { ChatRequest, Message } from '../../protocols/shared/canonical.ts'
import { contentsOf, redactContents } from './captured-contents.ts'

const captured = (messages: unknown[], max_characters = 1_000) =>
  contentsOf({ max_characters, is_recorded: true, request: { messages: messages as Message[] } as ChatRequest })

describe('recorded contents', () => {
  it('cut ids and names of tools, and redact them', () => {
    const id = `4111 ${'x'.repeat(3_000_000)}`
    const call = { id, type: 'function', function: { name: id, arguments: '{}' } }
    const { contents, characters } = captured([
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: 'done' },
    ])
    const clean = redactContents(contents, (text) => text.replaceAll('4111', '[redacted]'), 1_000)
    expect(JSON.stringify(clean).length).toBeLessThan(2_000)
    expect(JSON.stringify(clean)).not.toContain('4111')
    expect(characters).toBeGreaterThan(0)
    expect(characters).toBeLessThanOrEqual(1_000)
  })

  it('count messages and parts without text, of which a bounded number is kept', () => {
    const empty = Array.from({ length: 40_000 }, () => ({ role: 'user', content: '' }))
    const { contents } = captured(empty)
    expect(contents.is_cut).toBe(true)
    expect(JSON.stringify(contents).length).toBeLessThan(2_000)
    const parts = Array.from({ length: 40_000 }, () => ({ type: 'image_url', image_url: { url: 'a' } }))
    const one = captured([{ role: 'user', content: parts }])
    expect(one.contents.is_cut).toBe(true)
    expect(one.contents.input[0]?.parts.length).toBeLessThan(20)
  })
})
