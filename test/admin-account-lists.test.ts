/** Lists of tokens and projects by filters of the admin API. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type AdminGateway, startAdminGateway } from './kit/admin.ts'

let gateway: AdminGateway
const names = async (path: string) =>
  (await gateway.read<{ data: { name: string }[] }>(path)).data.map(({ name }) => name)

describe('the lists of accounts', () => {
  beforeAll(async () => {
    gateway = await startAdminGateway()
    for (const name of ['alpha one', 'alpha two', 'beta']) {
      await gateway.read('/tokens', { json: { name } })
      await gateway.read('/projects', { json: { name } })
    }
  })
  afterAll(() => gateway[Symbol.asyncDispose]())

  test('find tokens and projects by text, the newest first', async () => {
    expect(await names('/tokens?q=ALPHA&order=newest')).toEqual(['alpha two', 'alpha one'])
    expect(await names('/projects?q=alpha&order=newest')).toEqual(['alpha two', 'alpha one'])
  })

  test('separate active tokens from revoked ones', async () => {
    const { token_id } = await gateway.read<{ token_id: string }>('/tokens', { json: { name: 'gone' } })
    await gateway.read(`/tokens/${token_id}`, { method: 'DELETE' })
    expect(await names('/tokens?active=false')).toEqual(['gone'])
    expect(await names('/tokens?active=true&q=gone')).toEqual([])
  })

  test('name the filter whose value is not valid', async () => {
    for (const [query, param] of [
      [`q=${'x'.repeat(201)}`, 'q'],
      ['q=%00', 'q'],
      ['active=1', 'active'],
      ['order=name', 'order'],
    ]) {
      const response = await gateway.admin(`/tokens?${query}`)
      expect([response.status, (await response.json()).error.param]).toEqual([400, param])
    }
    expect((await gateway.admin(`/tokens?q=${'x'.repeat(200)}`)).status).toBe(200)
  })
})
