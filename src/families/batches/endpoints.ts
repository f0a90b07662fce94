/** The endpoints that lines of a batch may call, each with the family of its models. */
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { BatchApi } from '../../store/batches/batch-store.ts'

export const BATCH_ENDPOINTS = {
  '/v1/chat/completions': 'chatcompat',
  '/v1/responses': 'chatcompat-response',
  '/v1/embeddings': 'embeddings',
  '/v1/completions': 'chatcompat',
  '/v1/moderations': 'moderations',
  '/v1/images/generations': 'image-generation',
} as const satisfies Record<string, EndpointFamily>

export const MESSAGES_ENDPOINT = '/v1/messages'

export const familyOf = (endpoint: string): EndpointFamily =>
  endpoint === MESSAGES_ENDPOINT ? 'messages-compat' : BATCH_ENDPOINTS[endpoint as keyof typeof BATCH_ENDPOINTS]

/** As the vendors document them. */
export const MOST: Record<BatchApi, { lines: number; bytes: number; custom_id: RegExp; rule: string }> = {
  openai: {
    lines: 50_000,
    bytes: 200 * 1024 * 1024,
    custom_id: /^[^\p{Cc}]{1,128}$/u,
    rule: 'a string of 1 to 128 characters',
  },
  anthropic: {
    lines: 100_000,
    bytes: 256 * 1024 * 1024,
    custom_id: /^[a-zA-Z0-9_-]{1,64}$/,
    rule: '1 to 64 letters, digits, "_" and "-"',
  },
}
/** The largest body of one call: that of its route is checked when it is called. */
export const MOST_LINE_BYTES = 32 * 1024 * 1024
