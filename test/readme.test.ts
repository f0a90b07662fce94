/** What the README shows is what happens. */
import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { systemClock } from '../src/kit/clock.ts'
import { ENDPOINT_FAMILIES } from '../src/spec/endpoint-family.ts'
import { startGateway } from './kit/gateway.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const gateway = await startGateway({}, { clock: systemClock })
afterAll(() => gateway[Symbol.asyncDispose]())

/** Lines such as `ask /v1/embeddings '{...}'`. */
const asked = [...readme.matchAll(/^ask (\/\S+) '(.*)'$/gm)].map(([, path = '', json = '']) => ({
  path,
  body: JSON.parse(json) as Record<string, unknown>,
}))

test('there is a line for every family', () => {
  expect(asked).toHaveLength(ENDPOINT_FAMILIES.length)
  expect(new Set(asked.map(({ path }) => path)).size).toBe(ENDPOINT_FAMILIES.length)
})

test.each(asked)('$path answers as shown, on a fresh start', async ({ path, body }) => {
  const response = await gateway.call(path, { json: body })
  const answer = await response.json()
  expect([response.status, answer.error ?? null]).toEqual([200, null])
})
