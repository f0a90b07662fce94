/** Streams of a session that are resumed after the connection of their client has broken. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { systemClock } from '../src/kit/clock.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { BEFORE } from './kit/mcp.ts'

let gateway: TestGateway
let session: Record<string, string>
let calls = 0
const post = (body: object, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  gateway.call('/mcp', { json: { jsonrpc: '2.0', ...body }, headers, ...(signal && { signal }) })

beforeEach(async () => {
  gateway = await startGateway({}, { clock: systemClock })
  const params = { protocolVersion: BEFORE, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const opened = await post({ id: 0, method: 'initialize', params })
  await opened.text()
  session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': BEFORE }
})
afterEach(() => gateway[Symbol.asyncDispose]())

/** The id of the first event of a call, whose client leaves then. */
async function leave(version = BEFORE): Promise<string> {
  const leaving = new AbortController()
  const params = { name: 'sandbox__wait', arguments: { seconds: 0.3 }, _meta: { progressToken: 'p' } }
  const headers = { ...session, 'mcp-protocol-version': version }
  const reader = (await post({ id: ++calls, method: 'tools/call', params }, headers, leaving.signal)).body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  leaving.abort()
  await reader?.cancel().catch(() => {})
  return /^id: (.+)$/m.exec(new TextDecoder().decode(value))?.[1] ?? ''
}
const resume = (id: string, headers: Record<string, string> = {}) =>
  gateway.call('/mcp', { headers: { ...session, accept: 'text/event-stream', 'last-event-id': id, ...headers } })

describe('a call of a tool whose client has left', () => {
  it('goes on, and its result is sent to who resumes the stream', async () => {
    const id = await leave()
    const answer = await resume(id)
    const text = await answer.text()
    expect([answer.status, text]).toEqual([200, expect.stringContaining('Waited 0.3 s.')])
    expect(text).toContain('notifications/progress')
    const last = [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? ''
    expect(await (await resume(last)).text()).not.toContain('Waited')
    expect(await (await resume(id)).text()).toContain('Waited 0.3 s.')
    await gateway.instance.drain({ deadline_ms: 0 })
    expect(await gateway.instance.usage({ limit: 9 })).toMatchObject([
      { model: 'mcp/sandbox/wait', requests: 1, errors: 0 },
    ])
  })

  it('is not shown to another token, nor by an id of no event', async () => {
    const id = await leave()
    const { secret } = await gateway.instance.tokens.issue({ name: 'other' })
    const refused = async (answer: Response) => [answer.status, await answer.text()]
    expect(await refused(await resume(id, { authorization: `Bearer ${secret}` }))).toEqual([404, expect.anything()])
    expect(await refused(await resume('99_x'))).toEqual([400, expect.stringContaining('not kept')])
    expect(await refused(await resume(id, { 'mcp-session-id': 'mcp_none' }))).toEqual([404, expect.anything()])
  })

  it('ends with it where the version of its client cannot resume', async () => {
    await leave('2025-06-18')
    const id = await leave()
    await (await resume(id)).text()
    await gateway.instance.drain({ deadline_ms: 0 })
    expect(await gateway.instance.usage({ limit: 9 })).toMatchObject([{ requests: 2, estimated: 1 }])
  })

  it('ends with its session', async () => {
    await leave()
    await gateway.call('/mcp', { method: 'DELETE', headers: session })
    expect((await resume('1_x')).status).toBe(404)
  })
})
