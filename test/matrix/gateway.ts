/** The gateway of the matrix: one for all cells, on a real port, with every target behind it. */
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { listen } from '../../src/listen.ts'
import { startGateway } from '../kit/gateway.ts'
import { startTargets, type Target } from './targets.ts'
import type { ModelScript } from './vendors/wire-vendor.ts'

/** A gateway on a port. */
export type GatewayServer = {
  /** The base URL for clients, without `/v1`. */
  origin: string
  token: string
  close(): Promise<void>
}

export type MatrixGateway = GatewayServer & { target(name: string): Target }

export async function openMatrixGateway(script?: ModelScript): Promise<MatrixGateway> {
  const { targets, providers, models, stop } = startTargets(script)
  const server = await startGatewayServer({ providers, models })
  return {
    ...server,
    target(name) {
      const found = targets.find((one) => one.name === name)
      if (!found) throw new Error(`No target is called ${name}.`)
      return found
    },
    async close() {
      await server.close()
      await stop()
    },
  }
}

/** A gateway with these settings. Closing it throws if a request failed with an internal error. */
export async function startGatewayServer(settings: Parameters<typeof startGateway>[0]): Promise<GatewayServer> {
  const gateway = await startGateway(settings, { clock: systemClock })
  const faults: string[] = []
  const log = createLog({ clock: systemClock, level: 'error', pretty: false, write: (text) => faults.push(text) })
  let count = 0
  const listener = await listen({
    gateway: {
      // Each request has another address, because the guard against guessed tokens would delay unknown ones.
      fetch: (request, peer) => gateway.instance.fetch(request, { ...peer, address: addressOf(count++) }),
      drain: gateway.instance.drain,
    },
    server: { host: '127.0.0.1', port: 0 },
    log,
  })
  return {
    origin: listener.url,
    token: gateway.token,
    async close() {
      await listener.stop({ deadline_ms: 0 })
      await gateway[Symbol.asyncDispose]()
      log.flush()
      if (faults.length > 0) throw new Error(`requests that failed:\n${faults.join('')}`)
    },
  }
}

const addressOf = (count: number): string => `10.0.${Math.floor(count / 256) % 256}.${count % 256}`
