/** Reasoning that no vendor signed returns to a chat vendor through a client that sends only signed parts back. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { forModel, recorded } from './kit/agents.ts'
import { openPort, type Port } from './kit/served.ts'
import { THOUGHT } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { startWireVendor, type WireVendor } from './matrix/vendors/wire-vendor.ts'

let vendor: WireVendor
let port: Port
beforeAll(async () => {
  vendor = startWireVendor(chatcompatWire)
  port = await openPort({
    providers: { v: { base_url: vendor.url } },
    models: { 'v/m': { fields: ['thinking_enabled'] } },
  })
})
beforeEach(() => {
  vendor.requests.length = 0
})
afterAll(async () => {
  await port.close()
  await vendor.stop()
})

type Part = { text?: string; thought?: boolean; functionCall?: { id: string; name: string } }
type Content = { role: string; parts: Part[] }
type Answer = { candidates: { content: Content }[] }

describe('Gemini CLI, which sends calls back with their signatures, but no thoughts', () => {
  const [first] = recorded('gemini-cli')
  if (!first) throw new Error('Gemini CLI has no recorded request.')
  const QUESTION: Content = { role: 'user', parts: [{ text: 'Please use list_directory and read_file.' }] }

  /** The parts of one response. */
  async function ask(contents: Content[], isStreamed: boolean): Promise<Part[]> {
    const { path, method, headers, body } = forModel(first as NonNullable<typeof first>, 'v/m')
    const address = isStreamed ? path : path.replace('streamGenerateContent?alt=sse', 'generateContent')
    const response = await fetch(new URL(address, port.url), {
      method,
      headers: { ...headers, authorization: `Bearer ${port.token}` },
      body: JSON.stringify({ ...body, contents }),
    })
    expect(response.status).toBe(200)
    const text = await response.text()
    const answers: Answer[] = isStreamed
      ? [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
      : [JSON.parse(text)]
    return answers.flatMap(({ candidates }) => candidates.flatMap(({ content }) => content.parts))
  }

  test.each([
    ['whole', false],
    ['streamed', true],
  ] as const)('%s', async (_, isStreamed) => {
    const parts = await ask([QUESTION], isStreamed)
    const thoughts = parts.filter(({ thought }) => thought).map(({ text }) => text)
    expect(thoughts.join('')).toBe(THOUGHT)
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? [])
    expect(calls.map(({ name }) => name).sort()).toEqual(['list_directory', 'read_file'])
    const results = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'main.ts' } } }))
    await ask(
      [
        QUESTION,
        { role: 'model', parts: parts.filter(({ thought }) => !thought) },
        { role: 'user', parts: results as Part[] },
      ],
      isStreamed,
    )
    const messages = vendor.requests[1]?.json().messages as { role: string }[]
    expect(messages.filter(({ role }) => role === 'assistant')).toMatchObject([
      { reasoning_content: THOUGHT, tool_calls: [{}, {}] },
    ])
  })
})
