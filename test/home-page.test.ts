/** The gateway's home page: its example works, and it fits a narrow screen. */
import { expect, test } from 'bun:test'
import { startGateway } from './kit/gateway.ts'

async function homePage(settings: Parameters<typeof startGateway>[0] = {}): Promise<string> {
  await using gateway = await startGateway(settings)
  return (await gateway.call('/', { headers: { accept: 'text/html' } })).text()
}

test('shows a request to the sandbox where there is one', async () => {
  const page = await homePage()
  expect(page).toContain('&quot;model&quot;: &quot;sandbox/general&quot;')
  expect(page).not.toContain('MODEL')
})

test('names no model without the sandbox, since the page needs no token', async () => {
  const page = await homePage({
    sandbox: false,
    providers: { acme: { base_url: 'http://127.0.0.1:9/v1' } },
    models: { 'acme/secret': {} },
  })
  expect(page).toContain('&quot;model&quot;: &quot;MODEL&quot;')
  expect(page).toContain('Replace <code>MODEL</code> with an id of <code>GET /v1/models</code>.')
  expect(page).not.toContain('sandbox/general')
  expect(page).not.toContain('acme')
})

test('stacks the cells of its table and breaks long paths on a narrow screen', async () => {
  const page = await homePage()
  expect(page).toMatch(/@media \(max-width: 40rem\) \{[^@]*tbody, tr, td \{ display: block \}/)
  expect(page).toContain('td code { overflow-wrap: anywhere }')
})
