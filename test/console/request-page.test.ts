/** Computations of the console's page of one request: the waterfall, the explanation and the command. */
import { describe, expect, it } from 'bun:test'
import { curlOf, quote } from '../../console/src/pages/requests/curl.ts'
import { explainAttempt, explainRequest } from '../../console/src/pages/requests/routing-text.ts'
import { layOut, ticksOf } from '../../console/src/pages/requests/waterfall.ts'

describe('the waterfall of a request', () => {
  it('places each attempt by its start, and the response after the one that served it', () => {
    const { bars, total_ms, isEstimated } = layOut({
      total_ms: 1_000,
      stream: true,
      attempts: [
        { target: 'a/m', start_ms: 100, ms: 300, error: 'upstream_error', next: 'other_target' },
        { target: 'b/m', key: 'main', start_ms: 400, ms: 200 },
      ],
    })
    expect([total_ms, isEstimated]).toEqual([1_000, false])
    expect(bars.map(({ kind, label, from, width }) => [kind, label, from, width])).toEqual([
      ['wait', 'Before the first attempt', 0, 0.1],
      ['failed', 'a/m', 0.1, 0.3],
      ['served', 'b/m · main', 0.4, 0.2],
      ['response', 'Stream', 0.6, 0.4],
    ])
  })

  it('places attempts of older rows one after the other, and a hedge beside the one before it', () => {
    const { bars, isEstimated } = layOut({
      total_ms: 1_000,
      queued_ms: 50,
      attempts: [
        { target: 'a/m', ms: 150, error: 'timeout' },
        { target: 'b/m', lost: true },
        { target: 'c/m', hedge: true, ms: 700 },
      ],
    })
    expect(isEstimated).toBe(true)
    expect(bars.map(({ kind, start_ms, ms }) => [kind, start_ms, ms])).toEqual([
      ['wait', 0, 50],
      ['failed', 50, 150],
      ['lost', 200, 800],
      ['served', 200, 700],
      ['response', 900, 100],
    ])
  })

  it('stays within the axis whatever the row says', () => {
    for (const total_ms of [0, -5, 0.04, 10]) {
      const { bars } = layOut({ total_ms, attempts: [{ target: 'a/m', start_ms: 20, ms: 0 }, { target: 'b/m' }] })
      for (const { from, width } of bars) {
        expect(from).toBeGreaterThanOrEqual(0)
        expect(from + width).toBeLessThanOrEqual(1.000_001)
      }
    }
    expect(layOut({ total_ms: 5, attempts: [] }).bars).toEqual([])
  })

  it('has round ticks', () => {
    expect(ticksOf(1_000)).toEqual([0, 200, 400, 600, 800, 1_000])
    expect(ticksOf(73)).toEqual([0, 20, 40, 60])
    expect(ticksOf(0)).toEqual([0])
    for (const whole of [0.3, 1, 17, 999, 60_000, 3_600_000]) expect(ticksOf(whole).length).toBeWithin(3, 7)
  })
})

describe('the explanation of the routing', () => {
  const duration = (ms: number) => `${ms} ms`

  it('says what each attempt ended with, and what followed', () => {
    const failed = { target: 'a/m', ms: 30, error: 'upstream_error', upstream_status: 503, next: 'other_target' }
    expect(explainAttempt(failed, duration).text).toBe(
      'Failed after 30 ms with upstream_error (the provider returned 503). Another target was tried.',
    )
    expect(explainAttempt({ target: 'b/m', ms: 5 }, duration)).toEqual({
      title: 'b/m',
      text: 'Answered after 5 ms.',
      tone: 'ok',
    })
    expect(explainAttempt({ target: 'b/m', lost: true, hedge: true }, duration).text).toBe(
      'Asked beside the first one, which was slow. Given up, because another target answered first.',
    )
  })

  it('says why there was no attempt', () => {
    const request = { attempts: [], model: 'm', error: null }
    expect(explainRequest({ ...request, cache: 'hit' }, duration)[0]).toContain('response cache')
    expect(explainRequest({ ...request, error: 'rate_limit_exceeded' }, duration)[0]).toContain('rate_limit_exceeded')
    expect(explainRequest({ ...request, requested_model: 'n' }, duration)[0]).toBe(
      'The client asked for n; m served the call.',
    )
  })
})

describe('the command that repeats a request', () => {
  const chat = { method: 'POST', path: '/v1/chat/completions', family: 'chatcompat', model: 'acme/large' }

  it('has the model, the options and the messages that are stored, and no secret', () => {
    const text = curlOf(
      { ...chat, stream: true, session: 's1', tags: ['nightly', 'run:7'], metadata: { run: '7' }, end_user: 'ann' },
      'http://gateway',
      [{ role: 'user', parts: [{ type: 'text', text: "It's 5 o'clock" }, { type: 'image_url' }] }],
    )
    expect(text).toContain("curl 'http://gateway/v1/chat/completions' \\\n")
    expect(text).toContain('-H "Authorization: Bearer $GATEHOUSE_TOKEN"')
    expect(text).toContain("-H 'x-gatehouse-tags: nightly'")
    expect(text).toContain("It'\\''s 5 o'\\''clock\\n[image_url]")
    expect(text).toContain('"user": "ann"')
  })

  it('is what bash reads as the same words, whatever a client has named things', async () => {
    const payloads = ["'; touch /tmp/x; '", '$(id)', '`id`', '\\', '"', 'a\nb', '!!', "'\\''"]
    for (const payload of payloads) {
      const { stdout } = Bun.spawnSync(['bash', '-c', `printf %s ${quote(payload)}`])
      expect(stdout.toString()).toBe(payload)
    }
    expect(quote('a\u001b[31mb\u0007')).toBe("'a[31mb'")
  })

  it('has the body of each API', () => {
    const input = [
      { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
      { role: 'user', parts: [{ type: 'text', text: 'Hello' }] },
    ]
    const bodyOf = (family: string) => {
      const [, body = ''] = /-d '(.*)'$/s.exec(curlOf({ family, model: 'm' }, 'http://g', input)) ?? []
      return JSON.parse(body)
    }
    expect(bodyOf('messages-compat')).toEqual({
      model: 'm',
      max_tokens: 1024,
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'Hello' }],
    })
    expect(bodyOf('chatcompat-response').input).toHaveLength(2)
    expect(bodyOf('contentgen-compat').contents[1]).toEqual({ role: 'user', parts: [{ text: 'Hello' }] })
    expect(bodyOf('rerank')).toEqual({ model: 'm', query: 'Be brief.', documents: ['…'] })
    expect(bodyOf('video-generation')).toEqual({ model: 'm', prompt: 'Be brief.' })
  })
})
