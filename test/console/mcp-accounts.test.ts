/** The page of MCP servers for a person: connects an account by the authorization server, and disconnects it. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_ADMIN, DEFAULT_MCP } from '../../src/config/config.ts'
import type { OidcConfig } from '../../src/config/schema/admin-schema.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { openStore } from '../../src/store/open-store.ts'
import { beginSession } from '../kit/admin.ts'
import { startMcpVendor } from '../kit/mcp-vendor.ts'
import { startOAuthIssuer, USER_CLIENT } from '../kit/oauth-issuer.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, settled, type TestConsole } from './support/console.ts'

let opened: TestConsole
let secret: string
const stops: (() => unknown)[] = []
let issuer: ReturnType<typeof startOAuthIssuer>

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
    const store = await openStore({ url: store_url })
    secret = await beginSession(store, systemClock, 'oidc:ada')
    await store.close()
  })
  afterAll(async () => {
    await opened?.close()
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
})
