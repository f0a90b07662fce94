/** One request to the gateway, and its answer read. */
import type { JSONObject, SharedV4ProviderOptions } from '@ai-sdk/provider'
import {
  createJsonErrorResponseHandler,
  createJsonResponseHandler,
  type FlexibleSchema,
  getFromApi,
  postJsonToApi,
} from '@ai-sdk/provider-utils'
import { ERROR_STRUCTURE } from './errors.ts'
import { type Connection, lowered, PROVIDER } from './settings.ts'

type Asked<T> = {
  path: string
  schema: FlexibleSchema<T>
  /** Absent: a question. */
  body?: unknown
  headers?: Record<string, string | undefined> | undefined
  abortSignal?: AbortSignal | undefined
}

export type Answer<T> = { value: T; responseHeaders: Record<string, string> | undefined }

/** Throws APICallError with the gateway's message and status, its code in `data.error.code`. */
export async function ask<T>(connection: Connection, asked: Asked<T>): Promise<Answer<T>> {
  const { path, schema, body, headers, abortSignal } = asked
  const request = {
    url: connection.url(path),
    headers: { ...(await connection.headers()), ...lowered(headers) },
    fetch: connection.fetch,
    failedResponseHandler: createJsonErrorResponseHandler(ERROR_STRUCTURE),
    successfulResponseHandler: createJsonResponseHandler(schema),
    ...(abortSignal === undefined ? {} : { abortSignal }),
  }
  const { value, responseHeaders } = await (body === undefined
    ? getFromApi({ ...request, validateUrl: false })
    : postJsonToApi({ ...request, body }))
  return { value, responseHeaders }
}

/** What a caller says to the gateway in its own words: `providerOptions.gatehouse`, `negativePrompt` or `negative_prompt`. */
export function ownFields(options: SharedV4ProviderOptions | undefined): JSONObject {
  const own = options?.[PROVIDER] ?? {}
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [snakeCase(name), value]))
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
