/** The requests of the playground in each API, the difference of two answers, and answers as elements. */
import { describe, expect, it } from 'bun:test'
import { diffOf } from '../../console/src/lib/word-diff.ts'
import { blocksOf } from '../../console/src/pages/playground/answer-text.tsx'
import { callCode } from '../../console/src/pages/playground/call-code.ts'
import { chatBody } from '../../console/src/pages/playground/chat-body.ts'
import type { ChatMessage, ChatSettings } from '../../console/src/pages/playground/chat-types.ts'
import { codeOf, LANGUAGES } from '../../console/src/pages/playground/code-text.ts'
import { inDialect } from '../../console/src/pages/playground/dialects.ts'
import { newAnswer } from '../../console/src/pages/playground/run-chat.ts'

const SETTINGS: ChatSettings = {
  system: 'Be brief.',
  temperature: '3',
  top_p: '',
  max_tokens: '50',
  seed: '',
  stop: 'END',
  effort: 'low',
  format: 'json_schema',
  schema: '{"type":"object"}',
  tools: '[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]',
}
const MESSAGES: ChatMessage[] = [
  {
    role: 'user',
    text: "It's",
    files: [{ name: 'a.png', type: 'image/png', size: 1, data_url: `data:image/png;base64,${'A'.repeat(400)}` }],
  },
  { ...newAnswer(), state: 'done', tool_calls: [{ id: 'c1', name: 'weather', arguments: '{"city":"Rome"}' }] },
  { role: 'tool', results: [{ id: 'c1', name: 'weather', text: 'sunny' }] },
]
const body = chatBody('m', MESSAGES, { settings: SETTINGS, limits: { temperature: { maximum: 2 } } })

describe('the request of a conversation', () => {
  it('sends a number beyond a limit as that limit', () => {
    expect(body).toMatchObject({ temperature: 2, max_tokens: 50, stop: ['END'], reasoning_effort: 'low' })
  })

  it('is written for the Responses API', () => {
    expect(inDialect('responses', body)).toMatchObject({
      path: '/v1/responses',
      body: {
        instructions: 'Be brief.',
        max_output_tokens: 50,
        reasoning: { effort: 'low' },
        text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' } } },
        tools: [{ type: 'function', name: 'weather' }],
        input: [
          { role: 'user', content: [{ type: 'input_text' }, { type: 'input_image' }] },
          { type: 'function_call', call_id: 'c1', name: 'weather' },
          { type: 'function_call_output', call_id: 'c1', output: 'sunny' },
        ],
      },
    })
  })

  it('is written for the Messages API', () => {
    expect(inDialect('messages', body).body).toMatchObject({
      system: 'Be brief.',
      max_tokens: 50,
      stop_sequences: ['END'],
      tools: [{ name: 'weather', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: [{ type: 'text' }, { type: 'image', source: { media_type: 'image/png' } }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', input: { city: 'Rome' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'sunny' }] },
      ],
    })
  })

  it('is written for generateContent', () => {
    expect(inDialect('contentgen', body)).toMatchObject({
      path: '/v1beta/models/m:generateContent',
      body: {
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        generationConfig: { maxOutputTokens: 50, responseMimeType: 'application/json' },
        tools: [{ functionDeclarations: [{ name: 'weather' }] }],
        contents: [
          { role: 'user', parts: [{ text: "It's" }, { inlineData: { mimeType: 'image/png' } }] },
          { role: 'model', parts: [{ functionCall: { name: 'weather', args: { city: 'Rome' } } }] },
          { role: 'user', parts: [{ functionResponse: { name: 'weather' } }] },
        ],
      },
    })
  })

  it('is code without the contents of files, and quoted for a shell', () => {
    const curl = codeOf({ origin: 'http://g', dialect: 'chatcompat', language: 'curl', body })
    expect(curl).toContain("It'\\''s")
    expect(curl).toContain('data:image/png;base64,BASE64_OF_THE_FILE')
    const python = codeOf({ origin: 'http://g', dialect: 'contentgen', language: 'Python', body: { ...body, a: true } })
    expect(python).toContain('model="m",')
    expect(python).not.toMatch(/\btrue\b|\bnull\b/)
  })
})

describe('the difference of two answers', () => {
  it('names the words that were removed and added', () => {
    const { parts, is_cut } = diffOf('a red house', 'a blue house')
    expect(parts).toEqual([
      { kind: 'same', text: 'a' },
      { kind: 'removed', text: ' red' },
      { kind: 'added', text: ' blue' },
      { kind: 'same', text: ' house' },
    ])
    expect(is_cut).toBe(false)
  })

  it('compares only the beginning of very long answers', () => {
    expect(diffOf('a\n'.repeat(5_000), 'b\n'.repeat(5_000)).is_cut).toBe(true)
  })
})

describe('an answer', () => {
  it('is read as headings, lists, paragraphs and code, also while code has no end yet', () => {
    expect(blocksOf('# T\n\none\ntwo\n- a\n- b\n1. c\n```js\nx < 1')).toEqual([
      { kind: 'heading', text: 'T' },
      { kind: 'paragraph', text: 'one\ntwo' },
      { kind: 'list', items: ['a', 'b'], isOrdered: false },
      { kind: 'list', items: ['c'], isOrdered: true },
      { kind: 'code', text: 'x < 1', language: 'js' },
    ])
  })
})

describe('the code of a call of another kind', () => {
  const origin = 'http://gate'
  const image = `data:image/png;base64,${'A'.repeat(400)}`
  const codes = (path: string, body: Record<string, unknown>) =>
    LANGUAGES.map((language) => callCode({ origin, language, call: { path, body } }))

  it('uses the client of OpenAI where it has the call', () => {
    const [curl, python, typescript] = codes('/v1/embeddings', { model: 'm', input: ["It's", 'b'] })
    expect(curl).toContain('-d \'{\n  "model": "m",\n  "input": [\n    "It\'\\\'\'s"')
    expect(python).toContain('answer = client.embeddings.create(\n    model="m",\n    input=[')
    expect(typescript).toContain('client.embeddings.create({')
    expect(codes('/v1/moderations', { model: 'm', input: 'x' })[1]).toContain('client.moderations.create(')
    expect(codes('/v1/images/generations', { model: 'm', prompt: 'x' })[2]).toContain('client.images.generate({')
  })

  it('sends others over HTTP', () => {
    const [curl, python, typescript] = codes('/v1/rerank', { model: 'm', query: 'q', documents: ['a'] })
    expect(curl).toStartWith('curl http://gate/v1/rerank \\\n  -H "Authorization: Bearer $GATEHOUSE_TOKEN"')
    expect(python).toContain('url = "http://gate/v1/rerank"')
    expect(typescript).toContain('const url = "http://gate/v1/rerank"')
  })

  it.each(['/v1/video/generations', '/v1/3d/generations'])('polls the task of %s, and leaves files out', (path) => {
    for (const code of codes(path, { model: 'm', prompt: 'x', image })) {
      expect(code).toContain('task_id')
      expect(code).toContain('BASE64_OF_THE_FILE')
      expect(code).not.toContain('AAAA')
    }
  })

  it('sends an edit as a form with its files by name', () => {
    const [curl, python, typescript] = codes('/v1/images/edits', {
      model: 'm',
      prompt: "it's",
      image,
      mask: image,
      n: 1,
    })
    expect(curl).toContain(`--form-string 'prompt=it'\\''s'`)
    expect(curl).toContain('-F "image=@image.png" \\\n  -F "mask=@mask.png"')
    expect(python).toContain('image=open("image.png", "rb"),\n    mask=open("mask.png", "rb"),\n    model="m",')
    expect(typescript).toContain("mask: await toFile(createReadStream('mask.png')),")
    const [several] = codes('/v1/images/edits', { model: 'm', prompt: 'x', image: [image, image] })
    expect(several).toContain('-F "image[]=@image-1.png" \\\n  -F "image[]=@image-2.png"')
  })
})
