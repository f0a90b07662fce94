/** Sends one request to the gateway and decodes its response. */
import type { JSONObject, SharedV4ProviderOptions } from '@ai-sdk/provider'
import {
  createJsonErrorResponseHandler,
  createJsonResponseHandler,
  type FlexibleSchema,
  getFromApi,
  postJsonToApi,
} from '@ai-sdk/provider-utils'
import { ERROR_STRUCTURE } from './errors.ts'
import { type Connection, lowercased, PROVIDER } from './settings.ts'

/** What every call may have. */
export type CallParts = {
  headers?: Record<string, string | undefined> | undefined
  abortSignal?: AbortSignal | undefined
}

type ApiRequest<T> = CallParts & {
  path: string
  schema: FlexibleSchema<T>
  /** Absent: a GET. */
  body?: unknown
}

/** Where a call goes, and how it is refused. */
export const callTo = async (connection: Connection, path: string, { headers, abortSignal }: CallParts) => ({
  url: connection.url(path),
  headers: { ...(await connection.headers()), ...lowercased(headers) },
  fetch: connection.fetch,
  failedResponseHandler: createJsonErrorResponseHandler(ERROR_STRUCTURE),
  ...(abortSignal === undefined ? {} : { abortSignal }),
})

/** The response as the AI SDK's models describe it. */
export const responseOf = (modelId: string, headers: Record<string, string> | undefined) => ({
  timestamp: new Date(),
  modelId,
  ...(headers === undefined ? {} : { headers }),
})

type ApiResponse<T> = { value: T; responseHeaders: Record<string, string> | undefined }

/** Throws APICallError with the gateway's message and status, its code in `data.error.code`. */
export async function sendRequest<T>(connection: Connection, request: ApiRequest<T>): Promise<ApiResponse<T>> {
  const { path, schema, body } = request
  const call = {
    ...(await callTo(connection, path, request)),
    successfulResponseHandler: createJsonResponseHandler(schema),
  }
  const { value, responseHeaders } = await (body === undefined
    ? getFromApi({ ...call, validateUrl: false })
    : postJsonToApi({ ...call, body }))
  return { value, responseHeaders }
}

/** The fields of `providerOptions.gatehouse`, written as `negativePrompt` or `negative_prompt`. */
export function ownFields(options: SharedV4ProviderOptions | undefined): JSONObject {
  const own = options?.[PROVIDER] ?? {}
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [snakeCase(name), value]))
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
