import { expect, test } from 'bun:test'
import { loadConfig } from '../load/load.ts'

test('an address without a scheme is refused with what it must be, and without a regular expression', () => {
  const readFile = () => 'alerts: { webhook: { url: hooks.test } }\n'
  expect(() => loadConfig({ environment: {}, cwd: '/', readFile })).toThrow(
    'alerts.webhook.url: found a string (not shown), must be an http or https address, such as https://example.com',
  )
})
