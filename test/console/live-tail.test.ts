/**
 * The live tail of the console with 500 calls a second: what it draws, and, where GATEHOUSE_MEASURE=yes, how much of a core it takes.
 */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { openConsole, type TestConsole } from './support/console.ts'

const EVENTS_PER_SECOND = 500
const EVERY_MILLISECONDS = 20
const MEASURED_MILLISECONDS = 3_000
const DRAWINGS = 16
const LATE_MILLISECONDS = 500
/** Of one core, by all processes of the browser together. */
const MOST = 0.3

const eventOf = (number: number): string => {
  const at_ms = Date.now()
  const data = {
    object: 'request',
    request_id: `req_${number}`,
    at_ms,
    created_at: Math.floor(at_ms / 1000),
    token_id: 'tok_1',
    project_id: null,
    end_user: null,
    session: null,
    trace_id: null,
    tags: [],
    family: 'chatcompat',
    model: 'sandbox/general',
    provider: 'sandbox',
    target: 'sandbox/general',
    status: number % 9 ? 200 : 502,
    error: number % 9 ? null : 'upstream_error',
    total_ms: number % 1_000,
    input_tokens: number % 5_000,
    output_tokens: 20,
    cost: 0.01,
    provider_cost: 0.01,
    attempts: [{ target: 'sandbox/general', start_ms: 1, ms: 10 }],
    method: 'POST',
    path: '/v1/chat/completions',
    outcome: 'done',
  }
  return `event: request\ndata: ${JSON.stringify({ type: 'request', at_ms, data })}\n\n`
}

/** The gateway, but with a stream of made-up events. */
function busyGateway(origin: string) {
  let number = 0
  const events = () => {
    let timer: ReturnType<typeof setInterval>
    const encoder = new TextEncoder()
    const body = new ReadableStream({
      start(stream) {
        timer = setInterval(() => {
          for (let count = 0; count < (EVENTS_PER_SECOND * EVERY_MILLISECONDS) / 1000; count++)
            stream.enqueue(encoder.encode(eventOf(++number)))
        }, EVERY_MILLISECONDS)
      },
      cancel: () => clearInterval(timer),
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    fetch({ url, method, headers }) {
      const { pathname, search } = new URL(url)
      if (pathname === '/admin/v1/events') return events()
      return fetch(`${origin}${pathname}${search}`, { method, headers, decompress: false })
    },
  })
  return { origin: `http://127.0.0.1:${server.port}`, sent: () => number, stop: () => server.stop(true) }
}

let opened: TestConsole
let busy: ReturnType<typeof busyGateway>

describeInBrowser('the live tail', () => {
  beforeAll(async () => {
    opened = await openConsole()
    busy = busyGateway(opened.origin)
  })
  afterAll(async () => {
    await busy?.stop()
    await opened?.close()
  })

  async function openTail() {
    const page = await opened.open('/requests')
    await page.goto(`${busy.origin}/console/requests?live=yes`)
    await page.locator('.live-table tbody tr').nth(50).waitFor()
    return page
  }

  it('draws at most 60 rows, at most five times a second', async () => {
    const page = await openTail()
    const took_ms = await page.evaluate(async (drawings) => {
      const times: number[] = []
      // Called once for all changes of one drawing.
      const observer = new MutationObserver(() => {
        times.push(performance.now())
      })
      const table = document.querySelector('.live-table tbody')
      if (table) observer.observe(table, { childList: true })
      while (times.length < drawings) await new Promise((resolve) => requestAnimationFrame(resolve))
      observer.disconnect()
      return (times[drawings - 1] ?? 0) - (times[0] ?? 0)
    }, DRAWINGS)
    // 200 ms from one to the next. Only the first may be late, which is what the tolerance is for.
    expect(took_ms).toBeGreaterThan((DRAWINGS - 1) * 200 - LATE_MILLISECONDS)
    expect(await page.locator('.live-table tbody tr').count()).toBeLessThanOrEqual(60)
  })

  const measured = it.skipIf(process.env.GATEHOUSE_MEASURE !== 'yes')
  measured(`takes less than ${MOST * 100} % of a core with ${EVENTS_PER_SECOND} calls a second`, async () => {
    const page = await openTail()
    const session = await page.context().browser()?.newBrowserCDPSession()
    /** Seconds of the processor, whatever else the machine does. */
    const used = async () => {
      const info = await session?.send('SystemInfo.getProcessInfo')
      return info?.processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0) ?? 0
    }
    const [before, start, first] = [await used(), performance.now(), busy.sent()]
    await page.waitForTimeout(MEASURED_MILLISECONDS)
    const [after, seconds] = [await used(), (performance.now() - start) / 1000]
    expect((busy.sent() - first) / seconds).toBeGreaterThan(EVENTS_PER_SECOND / 2)
    expect((after - before) / seconds).toBeLessThan(MOST)
  })
})
