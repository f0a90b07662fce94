/** The diagnostics of a gateway whose every secret is known: none of them is in it, nor what its clients wrote. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Config } from '../src/config/config.ts'
import { formsOf } from '../src/providers/upstream/secret-forms.ts'
import { type AdminGateway, OWNER, startAdminGateway } from './kit/admin.ts'
import { failure, startVendor, type Vendor } from './kit/vendor.ts'

const secret = (name: string) => `${name}-canary+0123/456789==abcZ`
const SECRETS = {
  key: secret('sk-key'),
  second: secret('sk-second'),
  header: secret('header'),
  webhook: secret('webhook'),
  smtp: secret('smtp'),
  slack: secret('slack'),
  oidc: secret('oidc'),
  sink: secret('sink'),
  variable: secret('variable'),
  owner: OWNER,
}
const PRIVATE = ['a private prompt', 'user-of-a-client', 'session-of-a-client', 'my-own-request-id']

let vendor: Vendor
let gateway: AdminGateway
let text: string
let read: Record<string, unknown>

beforeAll(async () => {
  vendor = startVendor()
  // A vendor that repeats in its error what it was sent.
  vendor.otherwise(
    failure(401, { error: { message: `wrong: ${Object.values(SECRETS).join(' ')} ${PRIVATE.join(' ')}` } }),
  )
  const settings = {
    providers: {
      far: {
        base_url: `${vendor.url}/${encodeURIComponent('v1')}`,
        key: SECRETS.key,
        headers: { 'x-extra': SECRETS.header },
      },
      two: { base_url: vendor.url, keys: [{ name: 'first', key: SECRETS.second }] },
    },
    models: {
      'house/fast': { targets: [{ provider: 'far', model: 'm' }] },
      'house/two': { targets: [{ provider: 'two', model: 'm' }] },
    },
    alerts: {
      webhook: { url: `https://hooks.test/in?key=${SECRETS.webhook}`, secret: SECRETS.webhook },
      slack: { url: `https://slack.test/services/${SECRETS.slack}` },
      email: {
        smtp_url: `smtp://me:${encodeURIComponent(SECRETS.smtp)}@mail.test`,
        from: 'a@b.test',
        to: ['c@d.test'],
      },
    },
    request_log: {
      enabled: true,
      keep_days: 7,
      sinks: [{ http: { url: `https://sink.test/in`, headers: { authorization: `Bearer ${SECRETS.sink}` } } }],
    },
  } as unknown as Partial<Config>
  gateway = await startAdminGateway(settings, {
    environment: { GATEHOUSE_SOMETHING: SECRETS.variable, OTEL_EXPORTER_OTLP_HEADERS: SECRETS.variable, HOME: '/x' },
  })
  for (const model of ['house/fast', 'house/two', 'nobody/none']) {
    const headers = {
      'x-request-id': 'my-own-request-id',
      'x-gatehouse-user': 'user-of-a-client',
      'x-gatehouse-session': 'session-of-a-client',
      'x-gatehouse-tags': 'a:user-of-a-client',
    }
    await (await gateway.chat({ model, messages: [{ role: 'user', content: 'a private prompt' }] }, { headers })).text()
  }
  const rows = async () => (await gateway.read<{ data: unknown[] }>('/requests')).data.length
  while ((await rows()) < 3) {
    gateway.clock.advance(100)
    await Bun.sleep(0)
  }
  const response = await gateway.admin('/diagnostics')
  expect(response.headers.get('content-disposition')).toStartWith('attachment; filename="gatehouse-diagnostics-')
  text = await response.text()
  read = JSON.parse(text)
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

describe('diagnostics', () => {
  test('show providers, failed calls, settings and metrics', () => {
    expect(read).toMatchObject({ version: '0.0.0-test', store: { engine: 'sqlite' }, overrides: [] })
    expect((read.providers as { id: string }[]).map(({ id }) => id)).toEqual(['far', 'sandbox', 'two'])
    expect((read.failed_requests as object[]).map((row) => Object.keys(row))).toEqual(
      Array(3).fill(['at_ms', 'status', 'error', 'family', 'model', 'target', 'total_ms', 'attempts']),
    )
    expect((read.configuration as object[]).length).toBeGreaterThan(30)
    expect(read.environment).toEqual(['GATEHOUSE_SOMETHING', 'OTEL_EXPORTER_OTLP_HEADERS'])
    expect(read.metrics).toContain('gatehouse_')
  })

  test.each(Object.entries({ ...SECRETS, token: '' }))('hold no form of the secret %s', (name, value) => {
    for (const form of formsOf(name === 'token' ? gateway.token : value)) expect(text).not.toContain(form)
  })

  test.each(PRIVATE)('hold nothing of clients, such as %s', (words) => {
    expect(text).not.toContain(words)
  })

  test('show the rest where a section cannot be read', async () => {
    const whole = Object.keys(read)
    const broken = await startAdminGateway({ request_log: { enabled: false, keep_days: 7, sinks: [] } as never })
    try {
      expect(Object.keys(await broken.read('/diagnostics'))).toEqual(whole)
    } finally {
      await broken[Symbol.asyncDispose]()
    }
  })
})
