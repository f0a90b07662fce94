/** Clients that log in at an OpenID provider and call `/mcp` with its access tokens, and tokens that are not valid. */
import { afterEach, beforeEach, describe, expect, it, setSystemTime } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { DEFAULT_MCP } from '../src/config/config.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { BEFORE } from './kit/mcp.ts'

const RESOURCE = 'https://gatehouse.example.com/mcp'
const METADATA = '/.well-known/oauth-protected-resource'

async function startIssuer() {
  const pair = () => generateKeyPair('RS256', { extractable: true })
  const state = { keys: [{ kid: 'one', ...(await pair()) }], fetches: 0, discoveries: 0, isDown: false }
  const server = createServer(async (request, response) => {
    if (state.isDown) return response.writeHead(500).end()
    const isKeys = request.url === '/keys'
    if (isKeys) state.fetches++
    else state.discoveries++
    const keys = await Promise.all(
      state.keys.map(async ({ kid, publicKey }) => ({ kid, ...(await exportJWK(publicKey)) })),
    )
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(isKeys ? { keys } : { issuer, jwks_uri: `${issuer}/keys` }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    issuer,
    state,
    pair,
    async token(claims: JWTPayload = {}, header: object = {}, key: CryptoKey | Uint8Array | undefined = undefined) {
      const { kid = '', privateKey } = state.keys.at(-1) ?? {}
      const now = Math.floor(gateway.clock.now() / 1000)
      const body = { iss: issuer, aud: RESOURCE, sub: 'ada', exp: now + 300, groups: ['staff'], ...claims }
      return await new SignJWT(body)
        .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid, ...header })
        .sign(key ?? (privateKey as CryptoKey))
    },
    stop: () => new Promise((resolve) => server.close(resolve) && server.closeAllConnections()),
  }
}

let issuer: Awaited<ReturnType<typeof startIssuer>>
let gateway: TestGateway
const projects: Record<string, string> = {}

beforeEach(async () => {
  issuer = await startIssuer()
  const oauth = { issuer: issuer.issuer, resource: RESOURCE, claim: 'groups', projects, scopes: ['mcp'] }
  gateway = await startGateway({ mcp: { ...DEFAULT_MCP, oauth } })
  const { project_id } = await gateway.instance.projects.create({ name: 'Staff' })
  projects.staff = project_id
})
afterEach(async () => {
  setSystemTime()
  await gateway[Symbol.asyncDispose]()
  await issuer.stop()
})

/** The library of the keys reads the time of the process. */
function later(ms: number): void {
  gateway.clock.advance(ms)
  setSystemTime(Date.now() + ms)
}

const list = (token: string, path = '/mcp', headers: Record<string, string> = {}) =>
  gateway.call(path, {
    json: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
const refusal = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { message: string; data: { code: string } } }
  return [answer.status, error.data.code, error.message]
}

describe('the metadata of the resource', () => {
  it('names the issuer for each path, and is named by a 401', async () => {
    for (const path of ['', '/mcp', '/mcp/sandbox']) {
      const answer = await gateway.call(METADATA + path, { headers: { authorization: '' } })
      expect(await answer.json()).toEqual({
        resource: RESOURCE + (path === '/mcp/sandbox' ? '/sandbox' : ''),
        authorization_servers: [issuer.issuer],
        bearer_methods_supported: ['header'],
        resource_name: 'Gatehouse',
        scopes_supported: ['mcp'],
      })
    }
    const challengeOf = async (path: string, authorization: string) =>
      (await list('', path, { authorization })).headers.get('www-authenticate')
    const address = `https://gatehouse.example.com${METADATA}/mcp`
    expect(await challengeOf('/mcp', '')).toBe(`Bearer resource_metadata="${address}"`)
    expect(await challengeOf('/mcp/a"b', 'Bearer x')).toBe(
      `Bearer resource_metadata="${address}/a%22b", error="invalid_token"`,
    )
  })

  it('is not there without mcp.oauth', async () => {
    await using plain = await startGateway()
    expect((await plain.call(`${METADATA}/mcp`)).status).toBe(404)
  })
})

describe('an access token', () => {
  it('calls tools as a token of the project, one for each person', async () => {
    const answer = await list(await issuer.token())
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('sandbox__clock')])
    expect((await list(await issuer.token({ groups: 'staff' }, { typ: 'JWT' }))).status).toBe(200)
    await list(await issuer.token({ sub: 'bob' }))
    const tokens = await gateway.instance.tokens.list({ project_id: projects.staff as string })
    const host = new URL(issuer.issuer).host
    expect(tokens.map(({ name }) => name)).toEqual([`oauth:ada@${host}`, `oauth:bob@${host}`])
    await gateway.instance.tokens.revoke(tokens[0]?.token_id as string)
    expect((await list(await issuer.token())).status).toBe(403)
  })

  it('of one server is for that server only', async () => {
    const token = await issuer.token({ aud: `${RESOURCE}/sandbox` })
    expect([(await list(token, '/mcp/sandbox')).status, (await list(token)).status]).toEqual([200, 401])
  })

  it('is accepted at /mcp in the header only, beside API tokens', async () => {
    const token = await issuer.token()
    const models = await gateway.call('/v1/models', { headers: { authorization: `Bearer ${token}` } })
    const inQuery = await list('', `/mcp?key=${token}`, { authorization: '' })
    expect([models.status, inQuery.status]).toEqual([401, 401])
    expect((await list(gateway.token)).status).toBe(200)
  })

  it('of another person cannot use a session', async () => {
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: BEFORE, capabilities: {}, clientInfo }
    const opened = await gateway.call('/mcp', {
      json: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
      headers: { authorization: `Bearer ${await issuer.token()}` },
    })
    await opened.text()
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    const own = await list(await issuer.token(), '/mcp', session)
    expect([own.status, await own.text()]).toEqual([200, expect.stringContaining('sandbox__clock')])
    expect((await list(await issuer.token({ sub: 'bob' }), '/mcp', session)).status).toBe(404)
  })

  it('ends a stream of notifications when it expires', async () => {
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: BEFORE, capabilities: {}, clientInfo }
    const exp = Math.floor(gateway.clock.now() / 1000) + 5
    const authorization = `Bearer ${await issuer.token({ exp })}`
    const json = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
    const opened = await gateway.call('/mcp', { json, headers: { authorization } })
    await opened.text()
    const headers = {
      authorization,
      'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': BEFORE,
    }
    const notified = await gateway.call('/mcp', { headers: { ...headers, accept: 'text/event-stream' } })
    let isOver = false
    const text = notified.text().then((got) => {
      isOver = true
      return got
    })
    later(14_000)
    expect((await list(gateway.token)).status).toBe(200)
    expect(isOver).toBe(false)
    later(2_000)
    expect(await text).not.toContain('error')
  })

  const past = Date.UTC(2026, 0, 1) / 1000 - 60
  const wrong: [string, JWTPayload, object, string][] = [
    ['of another audience', { aud: 'https://other.example.com' }, {}, 'its claim "aud"'],
    ['of no audience', { aud: undefined as never }, {}, 'its claim "aud"'],
    ['of another issuer', { iss: 'https://evil.example.com' }, {}, 'its claim "iss"'],
    ['that has expired', { exp: past }, {}, 'it has expired'],
    ['that never expires', { exp: undefined as never }, {}, 'its claim "exp"'],
    ['that is not valid yet', { nbf: past + 600 }, {}, 'its claim "nbf"'],
    ['of a key that the issuer has not', {}, { kid: 'two' }, 'its key is none of the issuer'],
    ['of logout', {}, { typ: 'logout+jwt' }, 'no access token'],
  ]
  it.each(wrong)('%s is refused with 401', async (_, claims, header, message) => {
    const answer = await refusal(await list(await issuer.token(claims, header)))
    expect(answer).toEqual([401, 'invalid_api_key', expect.stringContaining(message)])
  })

  it('without a signature, or signed by what everybody knows, is refused with 401', async () => {
    const [, body = ''] = (await issuer.token()).split('.')
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const alg of ['none', 'None', 'NONE']) {
      expect((await list(`${encoded({ alg, typ: 'at+jwt', kid: 'one' })}.${body}.`)).status).toBe(401)
    }
    const pem = new TextEncoder().encode(await exportSPKI(issuer.state.keys[0]?.publicKey as CryptoKey))
    expect(await refusal(await list(await issuer.token({}, { alg: 'HS256' }, pem)))).toEqual([
      401,
      'invalid_api_key',
      expect.stringContaining('algorithm'),
    ])
    const stranger = await issuer.pair()
    const jwk = await exportJWK(stranger.publicKey)
    const forged = await issuer.token({}, { jwk, jku: 'https://evil.example.com/keys' }, stranger.privateKey)
    expect(await refusal(await list(forged))).toEqual([401, 'invalid_api_key', expect.stringContaining('signature')])
    expect((await list('eyJ.e30.x')).status).toBe(401)
  })

  it.each([
    ['without the claim', { groups: undefined }],
    ['with another value', { groups: ['guests'] }],
    ['with the name of a member of every object', { groups: ['constructor'] }],
    ['with a list of lists', { groups: [['staff']] }],
    ['with a subject that is no text', { sub: 'a\nb' }],
  ])('%s is refused with 403', async (_, claims) => {
    expect(await refusal(await list(await issuer.token(claims as JWTPayload)))).toEqual([
      403,
      'permission_denied',
      expect.stringContaining('claim'),
    ])
  })

  it('of a project that is disabled is refused', async () => {
    await gateway.instance.projects.update(projects.staff as string, { disabled: true })
    expect((await list(await issuer.token())).status).toBe(403)
  })
})

describe('the keys of the issuer', () => {
  it('are read once for a flood of tokens of unknown keys', async () => {
    const tokens = await Promise.all(Array.from({ length: 40 }, (_, at) => issuer.token({}, { kid: `k${at}` })))
    for (const token of tokens) expect((await list(token)).status).toBe(401)
    expect([issuer.state.fetches, issuer.state.discoveries]).toEqual([1, 1])
  })

  it('may be replaced', async () => {
    const before = await issuer.token()
    expect((await list(before)).status).toBe(200)
    issuer.state.keys = [{ kid: 'two', ...(await issuer.pair()) }]
    expect((await list(await issuer.token())).status).toBe(401)
    later(31_000)
    expect((await list(await issuer.token())).status).toBe(200)
    expect((await list(before)).status).toBe(401)
    expect(issuer.state.fetches).toBe(2)
  })

  it('cannot be read while the issuer is down, and API tokens are valid', async () => {
    issuer.state.isDown = true
    for (let round = 0; round < 3; round++) {
      expect(await refusal(await list(await issuer.token()))).toEqual([502, 'upstream_unreachable', expect.anything()])
    }
    expect((await list(gateway.token)).status).toBe(200)
    issuer.state.isDown = false
    later(3_000)
    expect((await list(await issuer.token())).status).toBe(200)
  })
})
