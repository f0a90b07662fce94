/** Handles a line of a batch like an HTTP request of its path, as one of the caller of the batch. */
import type { Peer } from '../http/context.ts'
import type { CallRoute } from '../protocols/shared/batch-exchange.ts'

/** No client is connected. */
const ADDRESS = '127.0.0.1'

type Handler = { fetch(request: Request, peer: Peer): Promise<Response> }

export const createCallRoute =
  (app: () => Handler): CallRoute =>
  async ({ path, headers, body, signal, caller, exchange }) => {
    const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body, signal })
    const response = await app().fetch(request, { address: ADDRESS, caller, ...(exchange && { exchange }) })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
