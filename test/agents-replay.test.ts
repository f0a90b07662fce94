/** Each recorded request of each coding agent, sent unchanged to a provider of each protocol. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { AGENTS, type AgentId, type AgentRequest, forModel, recorded } from './kit/agents.ts'
import { openPort, type Port } from './kit/served.ts'
import type { ScriptedResponse } from './matrix/model-script.ts'
import { chatcompatWire } from './matrix/vendors/chatcompat.ts'
import { contentgenWire } from './matrix/vendors/contentgen-compat.ts'
import { messagesWire } from './matrix/vendors/messages-compat.ts'
import { responsesWire } from './matrix/vendors/responses-compat.ts'
import { startWireVendor, type Wire, type WireVendor } from './matrix/vendors/wire-vendor.ts'

const ANSWER = 'The program prints the day.'
/** The response of every provider, which has validated the request before. */
const SCRIPTED_RESPONSE: ScriptedResponse = {
  reasoning: [],
  text: [ANSWER],
  calls: [],
  finish: 'stop',
  stop: undefined,
  usage: { input: 40, cached: 12, output: 6, reasoning: 0 },
  faults: {},
}

/** Codex sends fields, items and tools that the strict provider of the matrix rejects. */
const codexProvider: Wire = {
  ...responsesWire,
  decode({ client_metadata: _, tools = [], input, ...body }, path) {
    const known = (tools as { type: string }[]).filter(({ type }) => type === 'function' || type === 'custom')
    const items = (input as { type: string }[]).filter(({ type }) => type !== 'additional_tools')
    return responsesWire.decode({ ...body, tools: known, input: items }, path)
  },
}

const KINDS = {
  chatcompat: { wire: chatcompatWire, kind: 'chatcompat', model: 'm' },
  messages: { wire: messagesWire, kind: 'messages-compat', model: 'claude-sonnet-4-6' },
  responses: { wire: codexProvider, kind: 'responses-compat', model: 'gpt-5.1' },
  contentgen: { wire: contentgenWire, kind: 'contentgen-compat', model: 'gemini-3.5-flash' },
} as const
type KindId = keyof typeof KINDS
const KIND_IDS = Object.keys(KINDS) as KindId[]

/** The kind with the agent's protocol: the request reaches it unchanged. */
const OWN: Record<AgentId, KindId> = {
  'claude-code': 'messages',
  codex: 'responses',
  'codex-tool-search': 'responses',
  'codex-code-mode': 'responses',
  'gemini-cli': 'contentgen',
  opencode: 'chatcompat',
}

let vendors: Record<KindId, WireVendor>
let port: Port
beforeAll(async () => {
  const played = (id: KindId) => startWireVendor(KINDS[id].wire, { respond: () => SCRIPTED_RESPONSE })
  vendors = {
    chatcompat: played('chatcompat'),
    messages: played('messages'),
    responses: played('responses'),
    contentgen: played('contentgen'),
  }
  const urlOf = (id: KindId) => (id === 'contentgen' ? `${vendors[id].origin}/v1beta` : vendors[id].url)
  port = await openPort({
    providers: Object.fromEntries(
      KIND_IDS.map((id) => [id, { kind: KINDS[id].kind, base_url: urlOf(id), key: 'provider-key' }]),
    ),
    models: Object.fromEntries(
      KIND_IDS.map((id) => [`${id}/m`, { targets: [{ provider: id, model: KINDS[id].model }] }]),
    ),
  })
})
beforeEach(() => {
  for (const vendor of Object.values(vendors)) vendor.requests.length = 0
})
afterAll(async () => {
  await port.close()
  await Promise.all(Object.values(vendors).map((vendor) => vendor.stop()))
})

function send(request: AgentRequest): Promise<Response> {
  const { path, method, headers, body } = request
  return fetch(`${port.url.replace(/\/v1$/, '')}${path}`, {
    method,
    headers: { ...headers, authorization: `Bearer ${port.token}` },
    body: JSON.stringify(body),
  })
}

type NamedTool = {
  type?: string
  name?: string
  function?: NamedTool
  functionDeclarations?: NamedTool[]
  tools?: NamedTool[]
}
const namesOf = ({ name, function: fn, functionDeclarations = [], tools = [] }: NamedTool): string[] => [
  ...(tools.length > 0 ? [] : [name ?? fn?.name ?? []].flat()),
  ...[...functionDeclarations, ...tools].flatMap(namesOf),
]
const toolNamesOf = ({ tools = [] }: { tools?: NamedTool[] }): string[] => namesOf({ tools })

describe.each(AGENTS.map((agent) => [agent] as const))('%s', (agent) => {
  const requests = recorded(agent)

  test('has a recorded tool loop of at least three requests', () => {
    expect(requests.length).toBeGreaterThanOrEqual(3)
    expect(JSON.stringify(requests.at(-1))).toContain('console.log(new Date().getDate())')
  })

  test.each(KIND_IDS.map((id) => [id] as const))('is answered through a %s provider', async (id) => {
    for (const request of requests) {
      const response = await send(forModel(request, `${id}/m`))
      const text = await response.text()
      expect([response.status, text.includes(ANSWER)]).toEqual([200, true])
      expect(text).not.toContain('"error":{')
      const sent = vendors[id].requests.at(-1)?.json() as { tools?: NamedTool[] }
      if (id === OWN[agent] || !agent.startsWith('codex'))
        expect(toolNamesOf(sent).sort()).toEqual(toolNamesOf(request.body as typeof sent).sort())
      // Translated tools of a namespace may have other names; the one that runs commands keeps its name.
      else expect(toolNamesOf(sent).some((name) => name.includes('exec'))).toBe(true)
    }
    expect(vendors[id].requests.length).toBe(requests.length)
  })

  test('reaches a provider of the same protocol unchanged', async () => {
    const own = OWN[agent]
    for (const request of requests) {
      const response = await send(forModel(request, `${own}/m`))
      expect(response.status).toBe(200)
      await response.text()
      const sent = vendors[own].requests.at(-1)
      expect(sent?.json()).toEqual(forModel(request, KINDS[own].model).body)
      expect(sent?.headers['anthropic-beta']).toBe(request.headers['anthropic-beta'] as string)
    }
  })

  test('is answered by the sandbox', async () => {
    for (const request of requests) {
      const response = await send(forModel(request, 'sandbox/general'))
      expect(response.status).toBe(200)
      expect(await response.text()).not.toContain('"error":{')
    }
  })
})
