/** The cases hold for Gatehouse in each way that a stream goes through it, and find what is wrong with a faulty gateway. */
import { afterAll, describe, expect, test } from 'bun:test'
import { openPort } from '../../test/kit/served.ts'
import { CASES, runCase } from './cases.ts'
import type { Gateway } from './client.ts'
import { startVendor } from './vendor.ts'

const vendor = await startVendor()
const base_url = `http://127.0.0.1:${vendor.port}/v1`
const provider = { kind: 'chatcompat' as const, base_url, key: 'vendor-key' }
const providers = { relayed: provider, translated: { ...provider, quirks: { passthrough: false } } }
const models = { relayed: {}, translated: {} }
const targetsOf = (name: keyof typeof models) => ({ targets: [{ provider: name, model: 'm' }], routing: { tries: 1 } })
const settings = { providers, models: { 'c/relayed': targetsOf('relayed'), 'c/translated': targetsOf('translated') } }
const port = await openPort(settings)

/** What a simple proxy does wrong: reads the whole answer first, and hides how it ended. */
const faulty = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const response = await fetch(`${base_url}/chat/completions`, { method: 'POST', body: await request.text() })
    let text = ''
    try {
      for await (const bytes of response.body ?? []) text += Buffer.from(bytes).toString('latin1')
    } catch {
      text += 'data: [DONE]\n\n'
    }
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  },
})
afterAll(async () => {
  await faulty.stop(true)
  await vendor.close()
  await port.close()
})

describe.each(['relayed', 'translated'] as const)('streams, %s', (route) => {
  const { url, token } = port
  const gateway: Gateway = { url, token, model: `c/${route}` }
  test.each(CASES)('$name: $claim', async (one) => {
    expect(await runCase(one, gateway, vendor)).toBeUndefined()
  })
})

test('the cases name what a gateway does wrong that buffers and hides errors', async () => {
  const gateway: Gateway = { url: faulty.url.href.replace(/\/$/, ''), token: 'any', model: 'any' }
  const failed: string[] = []
  for (const one of CASES) {
    if ((await runCase(one, gateway, vendor)) !== undefined) failed.push(one.name)
  }
  expect(failed).toEqual([
    'at once',
    'split characters',
    'tool calls',
    'broken connection',
    'early end',
    'refusal',
    'failure',
    'client leaves',
    'client leaves early',
    'slow reader',
  ])
})
