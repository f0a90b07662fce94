/** The files of the web console over HTTP: pages, hashed files, compression, policy, and a console that is not built. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { buildConsole } from '../scripts/build-console.ts'
import { DEFAULT_ADMIN } from '../src/config/config.ts'
import type { Context } from '../src/http/context.ts'
import { consoleRoutes } from '../src/site/console-routes.ts'
import { OWNER } from './kit/admin.ts'
import { startGateway } from './kit/gateway.ts'

let home: string
let directory: string
let names: string[]
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-console-'))
  directory = join(home, 'console')
  await buildConsole(directory)
  names = readdirSync(join(directory, 'assets')).map((name) => name.replace(/\.br$/, ''))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** A file as it was before its compression. */
function contents(path: string): Buffer<ArrayBuffer> {
  const file = join(directory, path)
  return existsSync(file) ? readFileSync(file) : brotliDecompressSync(readFileSync(`${file}.br`))
}

/** Calls the routes as the app would. */
async function get(path: string, headers: Record<string, string> = {}, from = directory): Promise<Response> {
  const [page, asset, below] = consoleRoutes({ directory: from })
  const name = /^\/console\/assets\/(.+)$/.exec(path)?.[1]
  const route = name ? asset : path === '/console' ? page : below
  const context = { params: { name: name ?? '' }, header: (header: string) => headers[header] ?? null }
  return (await route?.handle(context as unknown as Context)) as Response
}
const named = (pattern: RegExp) => names.find((name) => pattern.test(name)) ?? 'none'

describe('GET /console', () => {
  it('is a page of the gateway for everybody, also below, with a policy that allows its own files only', async () => {
    await using gateway = await startGateway()
    for (const path of ['/console', '/console/', '/console/requests', '/console/models/sandbox/general?q=1']) {
      const response = await gateway.call(path, { headers: { authorization: '' } })
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  it('is linked from the home page', async () => {
    await using gateway = await startGateway()
    const home = await gateway.call('/', { headers: { accept: 'text/html' } })
    expect(await home.text()).toContain('<a href="/console">Console</a>')
  })

  it('names its scripts and its sheet, and has no script or style of its own', async () => {
    const page = await (await get('/console/tokens')).text()
    expect(page).toMatch(/<script type="module" src="\/console\/assets\/main-[a-z0-9]+\.js"><\/script>/)
    expect(page).toMatch(/<link rel="stylesheet" href="\/console\/assets\/console-[a-z0-9]+\.css">/)
    expect(page).not.toMatch(/<style|style=|<script>|https?:/)
    for (const [, name = ''] of page.matchAll(/\/console\/assets\/([\w.-]+)/g)) expect(names).toContain(name)
  })

  it('is not sent again while it is the same', async () => {
    const etag = (await get('/console')).headers.get('etag') ?? ''
    expect((await get('/console', { 'if-none-match': etag })).status).toBe(304)
    expect((await get('/console')).headers.get('cache-control')).toBe('no-cache')
  })

  it('says what to run where the console is not built', async () => {
    const response = await get('/console', {}, join(home, 'nothing'))
    expect([response.status, response.headers.get('content-type')]).toEqual([503, 'text/html; charset=utf-8'])
    expect(await response.text()).toContain('npm run build')
  })
})

describe('the files of the console', () => {
  it('are kept by the browser for good, and come in the best coding that it accepts', async () => {
    const page = await (await get('/console')).text()
    // The entry: other chunks have its name too, and the least are not compressed.
    const [entry = 'none'] = /main-[a-z0-9]+\.js/.exec(page) ?? []
    for (const name of [entry, named(/\.css$/)]) {
      const path = `/console/assets/${name}`
      const plain = contents(`assets/${name}`)
      const whole = await get(path)
      expect(Buffer.from(await whole.arrayBuffer())).toEqual(plain)
      expect(whole.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      const gzip = await get(path, { 'accept-encoding': 'gzip, br;q=0' })
      expect(gzip.headers.get('content-encoding')).toBe('gzip')
      expect(gunzipSync(await gzip.arrayBuffer())).toEqual(plain)
      const brotli = await get(path, { 'accept-encoding': 'gzip, deflate, br' })
      expect([brotli.headers.get('content-encoding'), brotli.headers.get('vary')]).toEqual(['br', 'accept-encoding'])
      expect(brotliDecompressSync(await brotli.arrayBuffer())).toEqual(plain)
      expect((await get(path, { 'if-none-match': `"${name}"` })).status).toBe(304)
    }
  })

  it.each(['none-00000000.js', '../index.html', '..%2f..%2fpackage.json', 'main.js', `main-${'a'.repeat(8)}.map`])(
    'has none named %s',
    async (name) => {
      await expect(get(`/console/assets/${name}`)).rejects.toMatchObject({ code: 'unknown_url' })
    },
  )

  it('takes at most 300 KB for the first page, script and style, compressed', () => {
    const text = (name: string) => contents(`assets/${name}`).toString()
    const page = contents('index.html').toString()
    const loaded = new Set<string>()
    const load = (name: string): void => {
      if (loaded.has(name)) return
      loaded.add(name)
      for (const [, other = ''] of text(name).matchAll(/(?:from|import)\s*"[^"]*?([\w-]+-[a-z0-9]+\.js)"/g)) load(other)
    }
    for (const [, name = ''] of page.matchAll(/\/console\/assets\/([\w.-]+)/g)) load(name)
    // What the first page loads by itself.
    for (const name of names.filter((one) => /^(home-page|chart-plot)-.*\.js$/.test(one))) load(name)
    const gzip = [...loaded].map((name) => gzipSync(contents(`assets/${name}`)).length)
    const total = gzip.reduce((sum, size) => sum + size, 0)
    expect(loaded.size).toBeGreaterThan(2)
    expect(total).toBeLessThan(300_000)
  })
})

describe('where the admin API has a listener of its own', () => {
  it('is served there and nowhere else', async () => {
    await using gateway = await startGateway({ admin: { ...DEFAULT_ADMIN, port: 1 } })
    for (const path of ['/console', '//console', '//admin/v1/tokens', '///admin/v1/tokens']) {
      const response = await gateway.instance.fetch(new Request(`http://gatehouse.test${path}`), {
        address: '10.0.0.1',
      })
      expect([path, response.status]).toEqual([path, 404])
    }
    const request = new Request('http://gatehouse.test/console')
    const there = await gateway.instance.fetch(request, { address: '127.0.0.1', isAdmin: true })
    expect(there.headers.get('content-type')).toBe('text/html; charset=utf-8')
  })
})

describe('a login link and the cookie of a session', () => {
  const settings = { admin: { ...DEFAULT_ADMIN, port: 1 } }
  async function ask(gateway: Awaited<ReturnType<typeof startGateway>>, origin: string, peer: { isAdmin?: true }) {
    const headers = { authorization: `Bearer ${OWNER}`, 'content-type': 'application/json', host: new URL(origin).host }
    const order = { method: 'POST', headers, body: JSON.stringify({ name: 'Ann', role: 'viewer' }) }
    const address = { address: '127.0.0.1', ...peer }
    const made = await gateway.instance.fetch(new Request(`${origin}/admin/v1/login-links`, order), address)
    const { link } = (await made.json()) as { link: string }
    const login = {
      ...order,
      body: JSON.stringify({ link: link.split('#')[1] }),
      headers: { ...headers, 'x-gatehouse-csrf': '1' },
    }
    const response = await gateway.instance.fetch(new Request(`${origin}/admin/v1/login`, login), address)
    expect(response.status).toBe(200)
    return [link.split('#')[0], /; Secure/i.test(response.headers.get('set-cookie') ?? '')]
  }
  const base_url = 'https://api.example.com'

  it('are for the address of the admin listener, and not for that of the clients', async () => {
    await using gateway = await startGateway({ ...settings, admin_token: OWNER, server: { base_url } })
    const own = await ask(gateway, 'http://10.0.0.5:9090', { isAdmin: true })
    expect(own).toEqual(['http://10.0.0.5:9090/console', false])
    // A proxy leads to the listener, with the host of the clients.
    expect(await ask(gateway, 'http://api.example.com', { isAdmin: true })).toEqual([`${base_url}/console`, true])
  })

  it('are for `server.base_url` where the admin API has no listener of its own', async () => {
    await using gateway = await startGateway({ admin_token: OWNER, server: { base_url } })
    expect(await ask(gateway, 'http://10.0.0.5:8080', {})).toEqual([`${base_url}/console`, true])
  })
})

describe('where the admin API is off', () => {
  it('is not served and not linked', async () => {
    await using gateway = await startGateway({ admin: { ...DEFAULT_ADMIN, enabled: false } })
    expect((await gateway.call('/console')).status).toBe(404)
    expect(await (await gateway.call('/', { headers: { accept: 'text/html' } })).text()).not.toContain('/console')
  })
})
