/** The routes of paths by name: `/passthrough/{provider}/...`, whose requests and answers pass as they are, within limits. */
import type { Call } from '../../calls/call.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { ServerSettings } from '../../config/config.ts'
import { PASSTHROUGH_METHODS } from '../../config/schema/passthrough-schema.ts'
import type { Context, Route } from '../../http/context.ts'
import type { Clock } from '../../kit/clock.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import { UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import { callStream } from '../shared/event-stream.ts'
import { forwardedQuery, requestHeaders, responseHeaders, SAFE_ANSWER } from './forwarded-headers.ts'
import {
  createPassthrough,
  createPassthroughPaths,
  type PassthroughPathParts,
  type PassthroughPaths,
  type PassthroughRule,
} from './passthrough.ts'
import { checkPath } from './path-patterns.ts'

export type PassthroughRouteParts = {
  pipeline: Pipeline
  /** What paths by name are made with. */
  byName: PassthroughPathParts
  settings: ServerSettings
  clock: Clock
}

const PREFIX = '/passthrough/'

const ERRORS: ErrorCode[] = [
  'invalid_value',
  'model_not_allowed',
  'unknown_url',
  'request_timeout',
  'request_too_large',
  ...UPSTREAM_ERRORS.filter((code) => code !== 'upstream_invalid_request'),
]

export function passthroughRoutes(parts: PassthroughRouteParts): Route[] {
  const passthrough = createPassthrough(parts)
  const passthroughPaths = createPassthroughPaths(parts.byName)
  return PASSTHROUGH_METHODS.map((method) => ({
    method,
    path: `${PREFIX}:provider/:path{.+}`,
    operation: {
      summary: `Send a ${method} request to a path of a provider by name`,
      description:
        'Passes the request with the key of the provider, and its answer with any status, to paths that `passthrough_paths` of the provider allows.',
      tag: 'Passthrough',
      params: { provider: 'A key of `providers`.', path: 'The path below its base URL.' },
      media: ['*/*'],
      otherResponses: { 400: 'The answer of the provider: with its own status, whatever that is.' },
      errors: ERRORS,
    },
    handle: (context) => pass(context, passthrough, { ...parts, passthroughPaths }),
  }))
}

async function pass(
  context: Context,
  passthrough: ReturnType<typeof createPassthrough>,
  { pipeline, passthroughPaths, settings, clock }: PassthroughRouteParts & { passthroughPaths: PassthroughPaths },
): Promise<Response> {
  const { request, caller } = context
  const [provider_id, path] = partsOf(context)
  const { segments, sent } = checkPath(path)
  const rule = passthroughPaths.find(provider_id, { method: request.method, segments }, caller)
  const call: Call = context
  call.plan = passthroughPaths.planFor(rule, caller)
  const { timeout_ms, tags } = call.options ?? {}
  call.options = { ...(timeout_ms && { timeout_ms }), ...(tags && { tags }), no_fallback: true }
  const { config } = rule
  const fault = new AbortController()
  const { body, length } = bodyOf(request, {
    max_bytes: config.max_request_bytes ?? settings.max_body_bytes,
    seconds: settings.body_seconds,
    clock,
    onFault: (error) => fault.abort(error),
  })
  const headers = requestHeaders(request.headers, config.request_headers)
  if (length !== undefined) headers['content-length'] = String(length)
  let answer: { status: number; headers: Headers } | undefined
  const { send } = pipeline.prepareStream(passthrough, call, {
    rule,
    call: {
      method: request.method as PassthroughRule['config']['methods'][number],
      path: sent,
      query: forwardedQuery(request.url),
      headers,
      body,
    },
    body_fault: fault.signal,
    onAnswer: (given) => {
      answer = given
    },
  })
  const stream = send()
  await stream.started
  const { status, headers: given } = answer ?? { status: 502, headers: new Headers() }
  const { 'content-type': content_type = 'application/octet-stream', ...passed } = responseHeaders(
    given,
    config.response_headers,
  )
  const answered = { ...passed, ...SAFE_ANSWER }
  if (WITHOUT_BODY.includes(status)) {
    for await (const _ of stream.parts); // to its end, which settles the call
    return new Response(null, { status, headers: answered })
  }
  return callStream(stream, context, {
    status,
    headers: answered,
    framing: { content_type, keep_alive: '' },
    settings,
    clock,
  })
}

/** Statuses for which the standard allows no body. */
const WITHOUT_BODY = [204, 205, 304]

/** The provider, and the path below it as it was sent, with its slash. */
function partsOf({ path }: Context): [provider_id: string, path: string] {
  const end = path.indexOf('/', PREFIX.length)
  try {
    return [decodeURIComponent(path.slice(PREFIX.length, end)), path.slice(end)]
  } catch {
    throw new GatewayError('invalid_value', 'The name of the provider must be percent-encoded UTF-8.')
  }
}

type BodyLimits = {
  max_bytes: number
  /** Within which the next bytes must arrive. */
  seconds: number
  clock: Clock
  onFault(error: GatewayError): void
}

/**
 * The body as the provider reads it, within its limits. `length`: as announced, where it is not sent in chunks: never more
 * bytes than these follow, since the provider would read them as another request.
 */
function bodyOf(
  { headers, body }: Request,
  { max_bytes, seconds, clock, onFault }: BodyLimits,
): { body: ReadableStream<Uint8Array> | undefined; length?: number } {
  const announced = headers.get('content-length')
  const isInChunks = headers.has('transfer-encoding')
  if (announced !== null && (isInChunks || !/^\d{1,15}$/.test(announced))) {
    throw new GatewayError('invalid_value', 'The request must have one content-length, or be sent in chunks.')
  }
  const length = announced === null ? undefined : Number(announced)
  const most = Math.min(max_bytes, length ?? max_bytes)
  const tooLarge = () => new GatewayError('request_too_large', `The body may have at most ${max_bytes} bytes.`)
  if (length !== undefined && length > max_bytes) throw tooLarge()
  if (!body || length === 0) return { body: undefined }
  const reader = body.getReader()
  let size = 0

  function fail(controller: ReadableStreamDefaultController, error: GatewayError): void {
    onFault(error)
    void reader.cancel().catch(() => {})
    controller.error(error)
  }

  const bounded = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const cancel = clock.after(seconds * 1000, () =>
          fail(controller, new GatewayError('request_timeout', `No more of the body arrived within ${seconds} s.`)),
        )
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else {
            size += value.length
            if (size > most) fail(controller, tooLarge())
            else controller.enqueue(value)
          }
        } catch (thrown) {
          controller.error(thrown)
        } finally {
          cancel()
        }
      },
      cancel: () => reader.cancel().catch(() => {}),
    },
    { highWaterMark: 0 },
  )
  return length === undefined ? { body: bounded } : { body: bounded, length }
}
