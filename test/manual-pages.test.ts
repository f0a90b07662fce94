/** The manual as the gateway serves it: HTML, Markdown, search, and the list for agents. */
import { afterAll, describe, expect, it } from 'bun:test'
import { basename } from 'node:path'
import { loadManual, type ManualFile } from '../src/site/manual/load-manual.ts'
import { startGateway } from './kit/gateway.ts'
import { manualPage, manualPages } from './kit/manual.ts'

let loads = 0
const gateway = await startGateway(
  {},
  {
    manual: () => {
      loads += 1
      return loadManual()
    },
  },
)
afterAll(() => gateway[Symbol.asyncDispose]())
const get = (path: string, headers: Record<string, string> = {}) =>
  gateway.call(path, { headers: { authorization: '', ...headers } })
const html = async (path: string) => (await get(path)).text()
const names = manualPages().map((path) => basename(path, '.md'))

describe('the manual of a gateway', () => {
  it('is not read before the first request for it, and once after that', async () => {
    expect(loads).toBe(0)
    await html('/manual')
    await html('/manual/search?q=token')
    expect(loads).toBe(1)
  })

  it('has a contents page that links to every page', async () => {
    const page = await html('/manual')
    expect(names.filter((name) => !page.includes(`<a href="/manual/${name}">`))).toEqual([])
  })

  it.each(names)('serves %s as HTML whose links lead to pages and sections that exist', async (name) => {
    const page = await html(`/manual/${name}`)
    const { addresses, anchors } = partsOf(page)
    expect(page).toContain('<main>')
    for (const address of addresses) {
      expect(address).toMatch(/^(\/|#|https:\/\/|http:\/\/127\.0\.0\.1)/)
      const [, other, anchor] = /^\/manual\/([\w-]+)(?:#(.+))?$/.exec(address) ?? []
      if (!other) continue
      expect([...names, 'search']).toContain(other)
      if (anchor) expect(partsOf(await html(`/manual/${other}`)).anchors).toContain(anchor)
    }
    for (const address of addresses.filter((one) => one.startsWith('#'))) expect(anchors).toContain(address.slice(1))
  })

  it.each(names)('serves %s as Markdown, by its address or by the accept header', async (name) => {
    const text = manualPage(`${name}.md`)
    for (const response of [
      await get(`/manual/${name}.md`),
      await get(`/manual/${name}`, { accept: 'text/markdown' }),
    ]) {
      expect(response.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
      expect(await response.text()).toBe(text)
    }
  })

  it('answers a page that does not exist with 404', async () => {
    for (const path of ['/manual/no-such-page', '/manual/no-such-page.md', '/manual/..%2fhouse', '/manual/README']) {
      expect((await get(path)).status).toBe(404)
    }
  })

  it('runs only its own script and sends no request to another server', async () => {
    for (const path of ['/manual', `/manual/${names[0]}`, '/manual/search?q=video']) {
      const response = await get(path)
      const policy = response.headers.get('content-security-policy') ?? ''
      const nonce = /'nonce-([A-Za-z0-9]{20})'/.exec(policy)?.[1] ?? 'none'
      expect(policy).toStartWith("default-src 'none'; script-src 'self' 'nonce-")
      const text = await response.text()
      expect([...text.matchAll(/<script([^>]*)>/g)].map(([, attributes]) => attributes?.trim())).toEqual([
        `nonce="${nonce}"`,
      ])
      expect(
        [...text.matchAll(/<(?:link|img|iframe)[^>]* (?:src|href)="([^"]*)"/g)].filter(
          ([, to]) => !to?.startsWith('data:'),
        ),
      ).toEqual([])
    }
  })

  it('finds sections that have words of a query', async () => {
    const page = await html('/manual/search?q=output_gone')
    expect(page).toContain('href="/manual/error-codes"')
    expect(await html('/manual/search?q=')).toContain('Enter the words')
    expect(await html('/manual/search?q=zzzqqq')).toContain('No section has a word of')
  })

  it('shows a query as text', async () => {
    const page = await html(`/manual/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
    expect(page).not.toContain('<script>alert')
    expect(page).toContain('value="&quot;&gt;&lt;script&gt;')
  })

  it('lists every page for agents at /llms.txt', async () => {
    const response = await get('/llms.txt')
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const text = await response.text()
    expect(names.filter((name) => !text.includes(`](/manual/${name}.md)`))).toEqual([])
  })

  it('is linked from the home page and from the introduction of the reference', async () => {
    expect(await (await get('/', { accept: 'text/html' })).text()).toContain('href="/manual"')
    expect((await (await get('/openapi.json')).json()).info.description).toContain('(/manual)')
  })
})

describe('a gateway without an installed manual', () => {
  it('serves an empty contents page', async () => {
    const files: ManualFile[] = []
    await using bare = await startGateway({}, { manual: async () => files })
    expect((await bare.call('/manual')).status).toBe(200)
    expect((await bare.call('/manual/chat')).status).toBe(404)
  })
})

function partsOf(page: string) {
  const [, body = ''] = /<main>([\s\S]*)<footer>/.exec(page) ?? []
  const texts = [...body.matchAll(/<a href="([^"]*)"/g)].map(([, address = '']) => address)
  return { addresses: texts, anchors: [...body.matchAll(/ id="([^"]*)"/g)].map(([, anchor = '']) => anchor) }
}
