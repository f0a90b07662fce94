/**
 * A gateway on a real port, with a real clock, for clients that only know an address. Its providers are the sandbox
 * (`sandbox/...`), the sandbox of a second gateway as an upstream (`far/...`), and a vendor that a test scripts (`v/m`,
 * and `v/narrow` with few capabilities).
 */
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { configOf, startGateway, type TestGateway } from './gateway.ts'
import { startVendor, type Vendor } from './vendor.ts'

type Settings = Parameters<typeof startGateway>[0]
type Parts = Parameters<typeof startGateway>[1]

/** A request that the port received. */
export type ReceivedRequest = { method: string; path: string; headers: Headers }

export type Port = {
  /** The base URL for clients: `http://127.0.0.1:<port>/v1`. */
  url: string
  token: string
  gateway: TestGateway
  /** Every received request, in order; a test may empty it. */
  requests: ReceivedRequest[]
  /** The secret of a token that may use these models only. */
  tokenFor(models: string[]): Promise<string>
  /** Calls in progress may finish until the deadline. Default: they are aborted at once. */
  close(options?: { deadline_ms: number }): Promise<void>
}

/** One gateway on a free port. */
export async function openPort(settings: Settings = {}, parts: Parts = {}): Promise<Port> {
  const gateway = await startGateway(settings, { clock: systemClock, ...parts })
  const requests: ReceivedRequest[] = []
  const faults: string[] = []
  const log = createLog({ clock: systemClock, level: 'error', pretty: false, write: (text) => faults.push(text) })
  const listener = await listen({
    gateway: {
      fetch(request, peer) {
        const { pathname } = new URL(request.url)
        requests.push({ method: request.method, path: pathname, headers: request.headers })
        return gateway.instance.fetch(request, peer)
      },
      drain: gateway.instance.drain,
    },
    server: { host: '127.0.0.1', port: 0, max_body_bytes: configOf(settings).server.max_body_bytes },
    log,
  })
  return {
    url: `${listener.url}/v1`,
    token: gateway.token,
    gateway,
    requests,
    tokenFor: async (models) => (await gateway.instance.tokens.issue({ name: 'narrow', models })).secret,
    async close(options = { deadline_ms: 0 }) {
      await listener.stop(options)
      await gateway[Symbol.asyncDispose]()
      log.flush()
      if (faults.length > 0) throw new Error(`requests without a response:\n${faults.join('')}`)
    },
  }
}

/** Models of the sandbox itself, and of the sandbox behind another gateway. */
export const GENERAL = ['sandbox/general', 'far/general']
export const VISION = ['sandbox/vision', 'far/vision']

/** Collects unhandled rejections until it is stopped. */
export function watchUnhandled(): { seen: unknown[]; stop(): unknown[] } {
  const seen: unknown[] = []
  const record = (reason: unknown) => seen.push(reason)
  process.on('unhandledRejection', record)
  return {
    seen,
    stop() {
      process.off('unhandledRejection', record)
      return seen
    },
  }
}

export type Served = Port & { vendor: Vendor }

/** Starts the gateway and all its upstreams. */
export async function serve(settings: Settings = {}): Promise<Served> {
  const vendor = startVendor()
  const far = await openPort()
  const near = await openPort({
    providers: {
      v: { base_url: vendor.url, key: 'vendor-key' },
      far: { base_url: far.url, key: far.token },
    },
    models: {
      'v/m': {},
      'v/narrow': { capabilities: { tools: false, json_schema: false, multiple_choices: false, image_input: false } },
      'far/general': farModel('general'),
      'far/vision': { ...farModel('vision'), fields: ['thinking_enabled', 'web_search'] },
    },
    ...settings,
  })
  return {
    ...near,
    vendor,
    async close() {
      await near.close()
      await far.close()
      await vendor.stop()
    },
  }
}

const farModel = (name: string) => ({ targets: [{ provider: 'far', model: `sandbox/${name}` }] })

/** A `fetch` for clients that accept one: records the text of responses as it arrives, so that a test can wait for parts. */
export function watchedFetch(): {
  fetch: typeof fetch
  /** All text received so far. */
  seen(): string
  /** Resolves once the text has arrived, at this offset or later. */
  until(text: string, from?: number): Promise<void>
} {
  let seen = ''
  const waiting: (() => void)[] = []
  const decoder = new TextDecoder()
  const tee = () =>
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        seen += decoder.decode(piece, { stream: true })
        for (const notify of waiting.splice(0)) notify()
        controller.enqueue(piece)
      },
    })
  const watched = async (...args: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...args)
    return new Response(response.body?.pipeThrough(tee()) ?? null, response)
  }
  return {
    fetch: Object.assign(watched, { preconnect: fetch.preconnect }),
    seen: () => seen,
    async until(text, from = 0) {
      while (!seen.includes(text, from)) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }
}
