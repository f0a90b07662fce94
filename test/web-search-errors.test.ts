/** Errors about the members of web search name the field that the client sent. */
import { expect, it } from 'bun:test'
import { startGateway } from './kit/gateway.ts'
import { startVendor, whole } from './kit/vendor.ts'

it('names web_search_options where the client sent these, and web_search where it sent that', async () => {
  const vendor = startVendor(whole('{}'))
  await using gateway = await startGateway({
    sandbox: false,
    providers: { v: { base_url: vendor.url, key: 'k' } },
    models: { 'v/m': { fields: ['web_search'] } },
  } as never)
  for (const field of ['web_search_options', 'web_search']) {
    const body = { model: 'v/m', messages: [{ role: 'user', content: 'x' }], [field]: { search_context_size: 'huge' } }
    const response = await gateway.chat(body)
    const { error } = (await response.json()) as { error: { param: string } }
    expect([response.status, error.param]).toEqual([400, `${field}.search_context_size`])
  }
  expect(vendor.requests).toHaveLength(0)
  await vendor.stop()
})
