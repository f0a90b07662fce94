/** Three gateways behind nginx, upgraded from the build of the schema before and rolled back to it, one by one, under load of calls, streams, WebSockets and realtime sessions. */
import { afterEach, describe, expect, it } from 'bun:test'
import { MIGRATIONS } from '../src/store/migrate.ts'
import { schemaOf } from '../src/store/store-schema.ts'
import { freePort } from './kit/free-port.ts'
import { bySample, NGINX, startNginx } from './kit/nginx.ts'
import { checkOut, olderBuilds } from './kit/older-build.ts'
import { SERVE_TOKEN, type ServeProcess } from './kit/serve-process.ts'
import { connectSocket } from './kit/socket-client.ts'
import { type Closing, COMMAND, expectEntries, onPostgres, serveIn } from './kit/store-places.ts'

const BUILD = Object.keys(MIGRATIONS).length
const BUILDS = olderBuilds(1)
const GATEWAYS = 3
/** One calls, the other one streams. */
const CLIENTS = 2
/** Longer than a short stream, shorter than a long one. */
const DRAIN_SECONDS = 2
/** A long stream is waited for so long at each stop. */
const STOP_SECONDS = 10
const SHORT = '@sandbox interval_ms=10 tokens=20'
const LONG = '@sandbox interval_ms=100 tokens=2000'

const closing: Closing = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function call(url: string, content: string, stream: boolean): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SERVE_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/general', stream, messages: [{ role: 'user', content }] }),
  })
}

const TOKEN = { token: SERVE_TOKEN }
const GOING_AWAY = 1001

/**
 * Responses over WebSockets, one after the other on each connection, until `isOver`. A connection that is closed as the gateway goes
 * away is opened again; its request that got no event was not accepted, and is sent again, as clients do.
 */
async function callOverSockets(url: string, isOver: () => boolean) {
  const failures: string[] = []
  let calls = 0
  let connections = 0
  while (!isOver()) {
    const socket = await connectSocket(`${url}/v1`, TOKEN).catch((error: Error) => void failures.push(error.message))
    if (!socket) continue
    connections++
    while (!isOver()) {
      const from = socket.events.length
      const body = { model: 'sandbox/general', input: SHORT, store: false }
      const end = await Promise.race([socket.create(body), socket.closed.then((closed) => ({ closed }))])
      if ('closed' in end) {
        if ((end.closed as { code: number }).code !== GOING_AWAY || socket.events.length > from)
          failures.push(JSON.stringify([end.closed, socket.events.slice(from)]).slice(0, 500))
        break
      }
      calls++
      if (end.type !== 'response.completed') failures.push(JSON.stringify(end).slice(0, 500))
    }
    socket.close()
  }
  return { calls, connections, failures }
}

type RealtimeEvent = { type: string; error?: { code: string }; response?: { status: string } }

/** A realtime session: its events, the next one of a type, and how it was closed. */
async function openSession(url: string, model: string) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=${model}`, {
    headers: { authorization: `Bearer ${SERVE_TOKEN}` },
  } as never)
  const events: RealtimeEvent[] = []
  const opened = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<number>()
  const watchers: (() => void)[] = []
  socket.onopen = () => opened.resolve()
  socket.onmessage = ({ data }) => {
    events.push(JSON.parse(String(data)))
    for (const notify of watchers.splice(0)) notify()
  }
  socket.onclose = ({ code }) => {
    opened.reject(new Error(`a session was refused: ${code}`))
    closed.resolve(code)
  }
  await opened.promise
  async function next(type: string, from = 0): Promise<RealtimeEvent> {
    for (;;) {
      const event = events.slice(from).find((one) => one.type === type)
      if (event) return event
      await new Promise<void>((resolve) => watchers.push(resolve))
    }
  }
  return { events, next, closed: closed.promise, send: (event: object) => socket.send(JSON.stringify(event)), socket }
}

/** Sessions of a few responses each, one after the other, until `isOver`: each ends by itself. */
async function callInSessions(url: string, isOver: () => boolean) {
  const failures: string[] = []
  let calls = 0
  while (!isOver()) {
    const session = await openSession(url, 'sandbox/realtime').catch(
      (error: Error) => void failures.push(error.message),
    )
    if (!session) continue
    for (let count = 0; count < 3 && !isOver(); count++) {
      const from = session.events.length
      session.send({ type: 'response.create', response: { output_modalities: ['text'] } })
      const end = await Promise.race([session.next('response.done', from), session.closed])
      calls++
      if (typeof end === 'number' || end.response?.status !== 'completed')
        failures.push(JSON.stringify([end, session.events.slice(from)]).slice(0, 500))
      if (typeof end === 'number') break
    }
    session.socket.close()
    await session.closed
  }
  return { calls, failures }
}

/** A vendor of realtime sessions whose responses begin and never end. */
function startSilentVendor() {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, self) => (self.upgrade(request) ? undefined : new Response('', { status: 404 })),
    websocket: {
      message(socket, data) {
        if (JSON.parse(String(data)).type !== 'response.create') return
        const response_id = 'r'
        socket.send(JSON.stringify({ type: 'response.created', response: { id: response_id } }))
        socket.send(JSON.stringify({ type: 'response.output_text.delta', response_id, delta: 'Once upon' }))
      },
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) }
}

/** A realtime session with a response that does not end, and one without: how both end. */
async function openSessions(url: string) {
  const [busy, idle] = [await openSession(url, 'v/talk'), await openSession(url, 'v/talk')]
  busy.send({ type: 'response.create', response: { output_modalities: ['text'] } })
  await busy.next('response.output_text.delta')
  return async () => {
    const codes = [await busy.closed, await idle.closed]
    return { codes, errors: [busy, idle].map(({ events }) => events.at(-1)?.error?.code) }
  }
}

/** A response over a WebSocket that no deadline lets end by itself, and a connection without one: how both end. */
async function openSockets(url: string) {
  const [busy, idle] = [await connectSocket(`${url}/v1`, TOKEN), await connectSocket(`${url}/v1`, TOKEN)]
  busy.send({ type: 'response.create', model: 'sandbox/general', input: LONG, store: false })
  await busy.until(({ type }) => type === 'response.output_text.delta')
  return async () => ({
    idle: (await idle.closed).code,
    busy: (await busy.closed).code,
    last: busy.events.findLast(({ type }) => type === 'error' || type === 'response.failed')?.type,
  })
}

/** Calls and short streams until `act` has ended; what did not end well. */
async function loadDuring(url: string, act: () => Promise<void>) {
  const failures: string[] = []
  let calls = 0
  let isOver = false
  const client = async (number: number): Promise<void> => {
    const stream = number % 2 === 1
    while (!isOver) {
      calls++
      const fault = await call(url, stream ? SHORT : 'Hello', stream).then(
        async (response) => {
          const text = await response.text()
          const isWhole = response.status === 200 && (!stream || text.endsWith('data: [DONE]\n\n'))
          return isWhole ? undefined : `${response.status} ${text.slice(-300)}`
        },
        (error: Error) => error.message,
      )
      if (fault !== undefined) failures.push(fault)
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  const overSockets = callOverSockets(url, () => isOver)
  const inSessions = callInSessions(url, () => isOver)
  try {
    await act()
  } finally {
    isOver = true
  }
  await clients
  const [sockets, sessions] = [await overSockets, await inSessions]
  return {
    calls: calls + sockets.calls + sessions.calls,
    connections: sockets.connections,
    failures: [...failures, ...sockets.failures, ...sessions.failures],
  }
}

/** A stream that no deadline lets end by itself: it has begun. */
async function longStream(url: string) {
  const response = await call(url, LONG, true)
  const reader = response.body?.getReader()
  await reader?.read()
  return async (): Promise<string> => {
    let text = ''
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return text
      text += new TextDecoder().decode(value)
    }
  }
}

describe.skipIf(NGINX === null || BUILDS === undefined)('three gateways on one database', () => {
  it('are upgraded and rolled back one by one behind nginx without a failed call or a lost entry', async () => {
    const vendor = startSilentVendor()
    closing.push(vendor.stop)
    const place = await onPostgres(closing, DRAIN_SECONDS, {
      server: { drain_seconds: DRAIN_SECONDS, shutdown_seconds: STOP_SECONDS, max_delay_ms: 0 },
      providers: { v: { base_url: vendor.url, key: 'k' } },
      models: { 'v/talk': { families: ['realtime'], targets: [{ provider: 'v', model: 'talk' }] } },
    })
    const [build] = BUILDS ?? []
    if (!build) throw new Error('there is no older build')
    const { command: older, remove } = checkOut(build)
    closing.push(remove)
    const gateways: ServeProcess[] = []
    for (let count = 0; count < GATEWAYS; count++) gateways.push(await serveIn(place, { command: older, closing }))
    expect((await schemaOf(place.url)).database).toBe(build.schema)
    const port = await freePort()
    const proxy = await startNginx(
      bySample(
        gateways.map((gateway) => gateway.port),
        port,
      ),
      port,
    )
    closing.push(proxy.stop)
    let long = 0
    /** A gateway is stopped once the one before serves again. */
    const replaceAll = async (command: string): Promise<void> => {
      for (const [index, gateway] of gateways.entries()) {
        const ended = await longStream(gateway.url)
        const closed = await openSockets(gateway.url)
        const sessionsClosed = await openSessions(gateway.url)
        long += 3
        gateway.child.kill('SIGTERM')
        // At the deadline a stream ends with an error that says so, and with its entry in the ledger.
        expect(await ended()).toContain('"error"')
        expect(await closed()).toEqual({ idle: GOING_AWAY, busy: GOING_AWAY, last: expect.any(String) })
        expect(await sessionsClosed()).toEqual({
          codes: [GOING_AWAY, GOING_AWAY],
          errors: ['shutting_down', 'shutting_down'],
        })
        expect(await gateway.child.exited).toBe(0)
        gateways[index] = await serveIn(place, { command, closing, port: gateway.port })
      }
    }
    let total = 0
    for (const command of [COMMAND, older]) {
      const { calls, connections, failures } = await loadDuring(proxy.url, () => replaceAll(command))
      expect({ failures, errors: failures.length > 0 ? await proxy.errors() : [] }).toEqual({
        failures: [],
        errors: [],
      })
      expect((await schemaOf(place.url)).database).toBe(BUILD)
      expect(calls).toBeGreaterThan(GATEWAYS)
      // One for each gateway that it was connected to when that was replaced.
      expect(connections).toBeGreaterThan(1)
      total += calls
    }
    for (const { child } of gateways) child.kill('SIGTERM')
    expect(await Promise.all(gateways.map(({ child }) => child.exited))).toEqual([0, 0, 0])
    await expectEntries(place, total + long)
  }, 600_000)
})
