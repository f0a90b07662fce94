/** The page of MCP servers for a person: connects an account by the authorization server, and disconnects it; for an operator: whose accounts there are. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_ADMIN, DEFAULT_MCP } from '../../src/config/config.ts'
import type { OidcConfig } from '../../src/config/schema/admin-schema.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { beginSession } from '../kit/admin.ts'
import { startMcpVendor } from '../kit/mcp-vendor.ts'
import { startOAuthIssuer, USER_CLIENT } from '../kit/oauth-issuer.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { injectedInto } from './support/injected.ts'
import { PAYLOADS } from './support/payloads.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole
let secret: string
let store: Store
const stops: (() => unknown)[] = []
let issuer: ReturnType<typeof startOAuthIssuer>

/** As if a person had connected an account. */
const connect = (subject: string, connected_at: number) =>
  store.mcpConnections.connect(
    { person: `${subject} https://login.example.com`, server: 'issues' },
    { connection_id: `mcpc_${crypto.randomUUID()}`, sealed: 'none', connected_at },
    { actor: 'gateway', action: 'test', object_type: 'test', object_id: 'issues', at_ms: 1 },
  )

describeInBrowser('accounts of a person at MCP servers in the console', () => {
  beforeAll(async () => {
    issuer = startOAuthIssuer()
    const vendor = startMcpVendor()
    vendor.intercept = () => Response.json({ resource: vendor.url, authorization_servers: [issuer.url] })
    stops.push(issuer.stop, vendor.stop)
    const store_url = `sqlite:${join(tmpdir(), `gatehouse-mcp-accounts-${process.pid}-${crypto.randomUUID()}.db`)}`
    const oidc = {
      issuer: 'https://login.example.com',
      client_id: 'console',
      client_secret: 'secret',
      role_claim: 'groups',
    }
    opened = await openConsole(
      {
        contents_key: Buffer.from(Array.from({ length: 32 }, (_, at) => at)).toString('base64'),
        admin: { ...DEFAULT_ADMIN, requests_per_minute: 1_000_000, oidc: { ...oidc, roles: {} } as OidcConfig },
        mcp: {
          ...DEFAULT_MCP,
          servers: { issues: { url: vendor.url, oauth_user: { issuer: issuer.url, ...USER_CLIENT } } },
        },
      },
      { store_url },
    )
    store = await openStore({ url: store_url })
    secret = await beginSession(store, systemClock, 'oidc:ada')
  })
  afterAll(async () => {
    await opened?.close()
    await store?.close()
    for (const stop of stops) await stop()
  })

  it('are connected, shown and disconnected', async () => {
    const page = await opened.open('/mcp', { role: 'nobody', allowed: /401/ })
    await page.context().addCookies([{ name: 'gatehouse_session', value: secret, url: `${opened.origin}/admin` }])
    await page.goto(`${opened.origin}/console/mcp`)
    await page.getByRole('button', { name: 'Connect your account at issues' }).press('Enter')
    await page.getByText('Your account at issues is connected').waitFor()
    await page.getByRole('button', { name: 'Disconnect from issues' }).waitFor()
    await settled(page)
    expect([new URL(page.url()).pathname, new URL(page.url()).search]).toEqual(['/console/mcp', ''])
    expect(await axeFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Disconnect from issues' }).press('Enter')
    await page.getByRole('button', { name: 'Disconnect', exact: true }).last().press('Enter')
    await page.getByRole('button', { name: 'Connect your account at issues' }).waitFor()
    expect(issuer.revoked.length).toBe(1)
  })

  it('are seen by viewers, and ended by operators, who are asked first', async () => {
    await connect('ada', 1_700_000_000)
    const viewed = await opened.open('/mcp', { role: 'viewer' })
    await viewed.getByRole('region', { name: 'People' }).getByText('ada', { exact: true }).waitFor()
    expect(await viewed.getByRole('button', { name: /^Disconnect/ }).count()).toBe(0)
    await connect('bob', 1_700_000_000)
    const page = await opened.open('/mcp?person=ADA', { role: 'operator', width: 390 })
    const cells = page.getByRole('region', { name: 'People' }).getByRole('row').last().getByRole('cell')
    await expectSoon(
      async () => (await cells.allTextContents()).slice(0, 4),
      ['ada', 'issues', 'Connected', 'Disconnect'],
    )
    expect((await cells.allTextContents()).at(-1)).toBe('–')
    await page.getByRole('button', { name: 'Disconnect ada from issues' }).press('Enter')
    await page.getByRole('alertdialog').getByText('It was never used.').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('alertdialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Disconnect ada from issues' }).press('Enter')
    await page.getByRole('button', { name: 'Disconnect', exact: true }).last().press('Enter')
    await page.getByText('Nobody meets this filter').waitFor()
    await page.getByRole('searchbox', { name: 'Find a person' }).fill('')
    await page.getByRole('button', { name: 'Disconnect bob from issues' }).waitFor()
    expect(await opened.admin<object>('/mcp/people')).toMatchObject({ data: [{ subject: 'bob' }] })
  })

  it.each(['light', 'dark'] as const)('are a table without serious faults for axe, %s', async (scheme) => {
    for (const payload of PAYLOADS) await connect(payload.replaceAll(/\s/g, '/'), 1_700_000_000)
    const page = await opened.open('/mcp', { scheme })
    await page.getByRole('region', { name: 'People' }).getByText('window.ran').first().waitFor()
    expect(await axeFaults(page)).toEqual([])
    await page
      .getByRole('button', { name: /^Disconnect/ })
      .first()
      .click()
    await page.getByRole('alertdialog').waitFor()
    expect(await injectedInto(page)).toEqual([])
    await screenshots(page, `mcp-people-${scheme}`)
  })
})
