/** The request of a background response as it is stored: that of the client, and what its caller asks of its routing. */
import { isRecord } from '../kit/json.ts'
import type { Call, CallOptions } from '../pipeline/call.ts'
import type { ResponsesRequest } from '../protocols/responses/client/schema.ts'
import type { JsonObject } from '../spec/task.ts'

/** No field of the API, and never taken from a client. Runs of older versions have none. */
const MEMBER = 'x-gatehouse-options'

type Requested = { clientRequest: Omit<ResponsesRequest, 'input'>; call: Pick<Call, 'options'> }

export function storedRequest({ clientRequest, call: { options } }: Requested): JsonObject {
  const { [MEMBER]: _, ...request } = clientRequest as Record<string, unknown>
  // The form of the API, and of the options, is JSON.
  return (options ? { ...request, [MEMBER]: options } : request) as JsonObject
}

/** The parts of what `storedRequest` has returned. */
export function readStoredRequest(stored: JsonObject): {
  clientRequest: ResponsesRequest
  options: CallOptions | undefined
} {
  const { [MEMBER]: options, ...clientRequest } = stored
  return {
    clientRequest: clientRequest as unknown as ResponsesRequest,
    options: isRecord(options) ? (options as CallOptions) : undefined,
  }
}
