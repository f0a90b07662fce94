/** Stored files on a separate host, so that a browser that runs one cannot reach the gateway. */
import { describe, expect, it } from 'bun:test'
import { perTest } from './kit/per-test.ts'

const { open } = perTest()

async function withImage(server: object) {
  const gateway = await open({ server })
  const answer = await gateway.call('/v1/images/generations', {
    json: { model: 'sandbox/image', prompt: 'a', size: '256x256', response_format: 'url' },
  })
  const { data } = (await answer.json()) as { data: { url: string }[] }
  const link = new URL(data[0]?.url ?? '')
  const at = (host: string, path = link.pathname + link.search, headers: Record<string, string> = {}) =>
    gateway.instance.fetch(new Request(`http://${host}${path}`, { headers }))
  return { gateway, link, at, token: { authorization: `Bearer ${gateway.token}` } }
}

const FILES = 'http://files.example:8788'

describe('server.files_base_url', () => {
  it('is the origin of links, and serves them', async () => {
    const { link, at } = await withImage({ files_base_url: FILES, base_url: 'http://api.example' })
    expect(link.origin).toBe(FILES)
    const file = await at('files.example:8788')
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'image/png'])
    expect(file.headers.get('content-security-policy')).toStartWith("sandbox; default-src 'none'")
  })

  it('serves nothing else, with or without a token', async () => {
    const { at, token } = await withImage({ files_base_url: FILES })
    for (const path of ['/', '/docs', '/docs/scalar.js', '/openapi.json', '/healthz', '/v1/models', '/v1/videos']) {
      const answer = await at('files.example', path, { ...token, accept: 'text/html' })
      expect([path, answer.status]).toEqual([path, 404])
      expect(answer.headers.get('content-type')).toStartWith('application/json')
    }
  })

  it('serves nothing else for any spelling of its host name', async () => {
    const { link, at } = await withImage({ files_base_url: FILES })
    for (const host of ['FILES.example', 'files.example.', '%66iles.example', 'files.example.:8788']) {
      expect([host, (await at(host, '/docs')).status]).toEqual([host, 404])
      expect([host, (await at(host, link.pathname + link.search)).status]).toEqual([host, 200])
    }
  })

  it('is where other hosts redirect a client, with a valid link', async () => {
    const { link, at, token } = await withImage({ files_base_url: FILES })
    for (const [path, headers] of [
      [link.pathname + link.search, {}],
      [link.pathname, token],
    ] as const) {
      const answer = await at('api.example', path, headers)
      expect([answer.status, answer.body]).toEqual([302, null])
      const there = new URL(answer.headers.get('location') ?? '')
      expect(there.origin).toBe(FILES)
      expect((await at(there.host, there.pathname + there.search)).status).toBe(200)
    }
    expect((await at('api.example', link.pathname)).status).toBe(401)
    expect((await at('api.example', `${link.pathname}?expires=9999999999&signature=x`)).status).toBe(403)
  })

  it('is recognized from forwarded headers only if the proxy is trusted', async () => {
    const forwarded = { 'x-forwarded-host': 'files.example' }
    const trusting = await withImage({ files_base_url: FILES, trust_proxy: true })
    expect((await trusting.at('10.0.0.1', undefined, forwarded)).status).toBe(200)
    expect((await trusting.at('10.0.0.1', '/docs', forwarded)).status).toBe(404)
    const other = await withImage({ files_base_url: FILES })
    expect((await other.at('10.0.0.1', undefined, forwarded)).status).toBe(302)
  })

  it('is optional: without it the gateway serves files', async () => {
    const { link, at } = await withImage({})
    expect((await at(link.host)).status).toBe(200)
    expect((await at('files.example')).status).toBe(200)
    expect((await at('files.example', '/healthz')).status).toBe(200)
  })
})
