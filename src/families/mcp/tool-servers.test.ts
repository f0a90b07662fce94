/** Calls of chat models to tools that a server has withdrawn since its list was read. */
import { expect, it } from 'bun:test'
import { DEFAULT_MCP } from '../../config/config.ts'
import { createToolServers } from './tool-servers.ts'

it('is no call, so that nothing is sent, recorded or charged', async () => {
  let tools = [{ name: 'act', inputSchema: { type: 'object' } }]
  const upstream = { name: 'v', config: {}, offer: async () => ({ tools }) }
  const servers = {
    find: () => upstream,
    toolsOf: (_: unknown, offer: { tools: unknown }) => offer.tools,
    approvedOf: async () => new Set(['act']),
  }
  let runs = 0
  const pipeline = () => ({
    async run() {
      runs++
      return { answer: { content: [{ type: 'text', text: 'done' }] } }
    },
  })
  const lists = { passed: async (tools: unknown) => tools }
  const parts = { servers, lists, pipeline, settings: () => DEFAULT_MCP }
  const server = createToolServers(parts as never).find({ label: 'v' } as never, {} as never)
  const call = () => server?.call('act', {}, { caller: {}, signal: new AbortController().signal } as never)
  expect((await server?.list({} as never))?.map(({ name }) => name)).toEqual(['act'])
  expect([await call(), runs]).toEqual([{ output: 'done' }, 1])
  tools = []
  expect([await call(), runs]).toEqual([{ error: 'There is no tool "act".' }, 1])
})
