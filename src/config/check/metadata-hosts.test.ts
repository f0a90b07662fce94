import { describe, expect, it } from 'bun:test'
import type { FileConfig } from '../schema/schema.ts'
import { violationsOf } from './problem.ts'
import { checkValues } from './value-checks.ts'

const refusedIn = (config: FileConfig): string[] =>
  violationsOf((report) => checkValues({ config, vendors: undefined, discover: undefined, now: 0 }, report)).flatMap(
    ({ path, message }) => (message.startsWith('leads to ') ? [path.join('.')] : []),
  )

const webhook = (url: string): FileConfig => ({ alerts: { webhook: { url } } })

describe('an address of the configuration', () => {
  it.each([
    'http://169.254.169.254/latest/meta-data',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://169.254.170.2/v2/credentials',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://[::ffff:169.254.169.254]/',
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://metadata.google.internal/',
    'http://METADATA.google.internal./',
    'http://100.100.100.200/',
    'http://168.63.129.16/',
  ])('may not be %s', (url) => {
    expect(refusedIn(webhook(url))).toEqual(['alerts.webhook.url'])
  })

  it.each([
    'https://hooks.example.com/x',
    'http://127.0.0.1:9000',
    'http://10.0.0.5',
    'http://169.253.0.1',
    'http://[fd00::1]/',
    'http://metadata.example.com/',
  ])('may be %s', (url) => {
    expect(refusedIn(webhook(url))).toEqual([])
  })

  it('is checked wherever the gateway sends to it', () => {
    const url = 'http://169.254.169.254'
    const config: FileConfig = {
      alerts: { slack: { url }, email: { host: '169.254.169.254', from: 'a@b.example', to: ['c@d.example'] } },
      telemetry: { otlp: { endpoint: url } },
      outputs: { s3: { bucket: 'b', endpoint: url } },
      request_log: { sinks: [{ http: { url } }] },
      providers: { acme: { base_url: `${url}/v1` } },
    }
    const paths = [
      'alerts.slack.url',
      'alerts.email.host',
      'telemetry.otlp.endpoint',
      'outputs.s3.endpoint',
      'request_log.sinks.0.http.url',
      'providers.acme.base_url',
    ]
    expect(refusedIn(config).sort()).toEqual(paths.sort())
    expect(refusedIn({ ...config, server: { metadata_hosts: ['169.254.169.254'] } })).toEqual([])
    expect(refusedIn({ ...config, server: { metadata_hosts: ['169.254.169.253'] } })).toHaveLength(6)
  })
})
