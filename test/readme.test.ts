/** The calls of the README work as shown. */
import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { systemClock } from '../src/kit/clock.ts'
import { ENDPOINT_FAMILIES } from '../src/spec/endpoint-family.ts'
import { startGateway } from './kit/gateway.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const gateway = await startGateway({}, { clock: systemClock })
afterAll(() => gateway[Symbol.asyncDispose]())

/** Lines such as `ask /v1/embeddings '{...}'`. */
const calls = [...readme.matchAll(/^ask (\/\S+) '(.*)'$/gm)].map(([, path = '', json = '']) => ({
  path,
  body: JSON.parse(json) as Record<string, unknown>,
}))

test('the README has a call for every family', () => {
  expect(calls).toHaveLength(ENDPOINT_FAMILIES.length)
  expect(new Set(calls.map(({ path }) => path)).size).toBe(ENDPOINT_FAMILIES.length)
})

test.each(calls)('$path returns 200 on a fresh start', async ({ path, body }) => {
  const response = await gateway.call(path, { json: body })
  const result = await response.json()
  expect([response.status, result.error ?? null]).toEqual([200, null])
})
