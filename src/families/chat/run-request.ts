/** The request of a background response as it is stored: that of the client, and what its caller asks of its routing. */
import type { Call, CallOptions } from '../../calls/call.ts'
import { isRecord } from '../../kit/json.ts'
import type { ResponsesRequest } from '../../protocols/responses/client/schema.ts'
import type { Capture } from '../../protocols/shared/capture.ts'
import type { JsonObject } from '../../spec/task.ts'

/** No fields of the API, and never taken from a client. Runs of older versions have none. */
const MEMBER = 'x-gatehouse-options'
const CAPTURE = 'x-gatehouse-capture'

type Requested = { clientRequest: Omit<ResponsesRequest, 'input'>; call: Pick<Call, 'options' | 'capture'> }

export function storedRequest({ clientRequest, call: { options, capture } }: Requested): JsonObject {
  const { [MEMBER]: _, [CAPTURE]: __, ...request } = clientRequest as Record<string, unknown>
  // The form of the API, and of the options, is JSON.
  return {
    ...request,
    ...(options && { [MEMBER]: options }),
    ...(capture?.is_recorded && { [CAPTURE]: { max_characters: capture.max_characters } }),
  } as JsonObject
}

/** The parts of what `storedRequest` has returned. */
export function readStoredRequest(stored: JsonObject): {
  clientRequest: ResponsesRequest
  options: CallOptions | undefined
  /** Where the request log records the contents of the call. */
  capture: Capture | undefined
} {
  const { [MEMBER]: options, [CAPTURE]: capture, ...clientRequest } = stored
  return {
    clientRequest: clientRequest as unknown as ResponsesRequest,
    options: isRecord(options) ? (options as CallOptions) : undefined,
    capture: isRecord(capture)
      ? { max_characters: Number(capture.max_characters), span_characters: 0, is_recorded: true }
      : undefined,
  }
}
