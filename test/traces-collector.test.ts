/** Checks that a slow, absent or broken collector does nothing to calls, and what a stop exports. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kit/clock.ts'
import { type Collector, startCollector } from './kit/collector.ts'
import { startGateway } from './kit/gateway.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const QUESTION = { model: 'sandbox/moderation', input: 'hi' }
const CALLS = 3_000
/** Smaller than what the calls make. */
const SMALL_QUEUE = { OTEL_BSP_MAX_QUEUE_SIZE: '200', OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_BSP_EXPORT_TIMEOUT: '60000' }

/** Their longest times, sorted. */
async function timesOf(endpoint: string | undefined): Promise<{ times: number[]; logged: string; rss_mb: number }> {
  const gateway = await startGateway(endpoint === undefined ? {} : { telemetry: { otlp: { endpoint } } }, {
    clock: systemClock,
    environment: SMALL_QUEUE,
  })
  const times: number[] = []
  const before = process.memoryUsage.rss()
  for (let call = 0; call < CALLS; call++) {
    const start = performance.now()
    const response = await gateway.call('/v1/moderations', { json: QUESTION })
    await response.arrayBuffer()
    times.push(performance.now() - start)
    if (response.status !== 200) throw new Error(`${response.status}`)
  }
  const rss_mb = (process.memoryUsage.rss() - before) / 1e6
  const closed = performance.now()
  await gateway.instance.close({ deadline_ms: 0 })
  if (performance.now() - closed > 10_000) throw new Error('The stop waited for the collector.')
  return { times: times.sort((one, other) => one - other), logged: gateway.logged(), rss_mb }
}

const lostIn = (logged: string): number =>
  [...logged.matchAll(/"event":"spans: [^"]*","lost":(\d+)/g)].reduce((sum, [, lost]) => sum + Number(lost), 0)

function collector(answer?: Collector['answer']): Collector {
  const started = startCollector()
  started.answer = answer
  closing.push(started.stop)
  return started
}

describe('calls', () => {
  it.each<[string, () => string]>([
    ['accepts nothing', () => 'http://127.0.0.1:1'],
    ['never answers', () => collector(() => new Promise(() => {})).url],
    ['answers with 500', () => collector(() => new Response('', { status: 500 })).url],
    [
      'answers with 503 and asks for patience',
      () => collector(() => new Response('', { status: 503, headers: { 'retry-after': '60' } })).url,
    ],
  ])(
    'succeed in bounded memory while the collector %s, and the loss is logged',
    async (_, url) => {
      const { times, logged, rss_mb } = await timesOf(url())
      expect(times).toHaveLength(CALLS)
      expect(lostIn(logged)).toBeGreaterThan(0)
      expect(rss_mb).toBeLessThan(150)
      expect(logged).not.toContain('unhandled')
    },
    120_000,
  )
})

describe('a stop', () => {
  it('by SIGTERM exports what is queued', async () => {
    const otlp = collector()
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-traces-'))
    const file = join(directory, 'gatehouse.yaml')
    writeFileSync(file, `discover: false\ntelemetry: { otlp: { endpoint: "${otlp.url}" } }\n`)
    const token = 'sk-traces-of-a-process-0000'
    const gateway = Bun.spawn(
      [process.execPath, 'src/main.ts', 'serve', '--config', file, '--port', '0', '--data-dir', directory, '--json'],
      {
        cwd: join(import.meta.dir, '..'),
        env: { PATH: process.env.PATH ?? '', GATEHOUSE_BOOTSTRAP_TOKEN: token, OTEL_BSP_SCHEDULE_DELAY: '3600000' },
        stdout: 'pipe',
        stderr: 'ignore',
      },
    )
    closing.push(async () => gateway.kill('SIGKILL'))
    let banner = ''
    for await (const piece of gateway.stdout) {
      banner += new TextDecoder().decode(piece)
      if (/"url":\s*"/.test(banner)) break
    }
    const url = /"url":\s*"([^"]+)"/.exec(banner)?.[1]
    const response = await fetch(`${url}/v1/moderations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(QUESTION),
    })
    await response.arrayBuffer()
    expect(otlp.spans).toEqual([])
    gateway.kill('SIGTERM')
    expect(await gateway.exited).toBe(0)
    expect(otlp.spans.map(({ name }) => name)).toContain('POST /v1/moderations')
  }, 120_000)
})
