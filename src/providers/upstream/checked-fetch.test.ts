import { expect, test } from 'bun:test'
import { createCheckedFetch } from './checked-fetch.ts'

const checked = (addresses: string[], allowed?: string[]) =>
  createCheckedFetch({ allowed, environment: {}, resolve: async () => addresses })

test('a name that resolves to a metadata service is refused, whatever else it resolves to', async () => {
  for (const address of ['169.254.169.254', 'fe80::1', '::ffff:169.254.169.254', '100.100.100.200', 'fd00:ec2::254']) {
    for (const all of [[address], ['127.0.0.1', address]]) {
      const asked = checked(all)('http://acme.test/v1/models', {})
      await expect(asked).rejects.toMatchObject({
        code: 'upstream_unreachable',
        message: expect.stringContaining('metadata'),
      })
    }
  }
})

test('the address that was checked is the one connected to, with the name in the request', async () => {
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) => new Response(headers.get('host')),
  })
  const response = await checked(['127.0.0.1'])(`http://acme.test:${server.port}/v1/models`, { headers: { a: 'b' } })
  expect(await response.text()).toBe(`acme.test:${server.port}`)
})

test('an address is connected to as it is, and so is a host that the operator allows', async () => {
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) => new Response(headers.get('host')),
  })
  const host = `127.0.0.1:${server.port}`
  expect(await (await checked(['169.254.169.254'])(`http://${host}/`, {})).text()).toBe(host)
  const local = `localhost:${server.port}`
  expect(await (await checked(['169.254.169.254'], ['localhost'])(`http://${local}/`, {})).text()).toBe(local)
})
