/** The routes of realtime sessions: OpenAI's and Google's WebSockets, and ephemeral client secrets. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import Type from 'typebox'
import type { Call } from '../../../calls/call.ts'
import type { Pipeline } from '../../../calls/pipeline.ts'
import type { ServerSettings } from '../../../config/config.ts'
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { jsonResponse } from '../../../http/live.ts'
import { presentedSecret } from '../../../http/request-parts.ts'
import type { SocketProtocol } from '../../../http/socket.ts'
import { checker } from '../../../kit/checker.ts'
import { type Clock, unixSeconds } from '../../../kit/clock.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord, memberOf, parseJson } from '../../../kit/json.ts'
import type { Log } from '../../../kit/log.ts'
import { refusalOf } from '../../../protocols/shared/request-error.ts'
import type { Target } from '../../../providers/provider.ts'
import type { RealtimeApi } from '../../../providers/realtime.ts'
import { geminiLivePath } from '../../../providers/realtime-connection.ts'
import { type ErrorCode, GatewayError } from '../../../spec/error.ts'
import { MODEL_REQUEST_ERRORS } from '../../../spec/error-lists.ts'
import { ClientSecretAnswer, ClientSecretRequest } from '../../../spec/realtime-request.ts'
import type { Caller } from '../../../spec/token.ts'
import { createRealtime, createTranscribed } from '../realtime.ts'
import { eventsOf } from '../realtime-events.ts'
import { createSession, type SessionParts, type SessionStart } from './session-socket.ts'

export type RealtimeRouteParts = {
  pipeline: Pipeline
  catalogue: SessionParts['catalogue']
  tokens: { callerOf(token_id: string): Promise<Caller | undefined> }
  /** Admits a request as one of a caller that the app has not authenticated. */
  enterAs(context: Context, caller: Caller): void
  /** Signs client secrets; the same in all processes. */
  realtimeSecret: string
  settings: ServerSettings
  clock: Clock
  log: Log
}

type Parts = RealtimeRouteParts & {
  secrets: ReturnType<typeof createClientSecrets>
  families: SessionParts['families']
}

const SOCKET_ERRORS: ErrorCode[] = [
  'upgrade_required',
  'invalid_value',
  'missing_required_parameter',
  'unsupported_endpoint',
  'unsupported_value',
  'unsupported_parameter',
  'model_not_allowed',
  'model_not_found',
  'rate_limit_exceeded',
]

export function realtimeRoutes(given: RealtimeRouteParts): Route[] {
  const now = () => unixSeconds(given.clock)
  const secrets = createClientSecrets({ master: given.realtimeSecret, now })
  const families = {
    admitted: createRealtime({ is_admitted: true }),
    refused: createRealtime({ is_admitted: false }),
    transcribed: createTranscribed(),
  }
  const parts = { ...given, secrets, families }
  return [
    openaiRoute(parts),
    clientSecretsRoute(parts),
    ...GEMINI_VERSIONS.map((version) => geminiRoute(version, parts)),
  ]
}

const hasClientSecret = ({ request }: Context): boolean =>
  presentedSecret(request)?.startsWith(CLIENT_SECRET_PREFIX) === true

function openaiRoute(parts: Parts): Route {
  return {
    method: 'GET',
    path: '/v1/realtime',
    public: hasClientSecret,
    operation: {
      summary: 'Open a realtime session',
      description:
        'A WebSocket with the events of the Realtime API, relayed to the provider of the model. Without an upgrade the answer is 426. Browsers send the token or a client secret as the subprotocol `openai-insecure-api-key.<secret>` beside `realtime`.',
      tag: 'Realtime',
      query: {
        model: { description: 'A model of the family `realtime`.', schema: Type.String(), example: 'sandbox/realtime' },
      },
      otherResponses: { 101: 'The connection is a WebSocket.' },
      errors: SOCKET_ERRORS,
    },
    handle: needsUpgrade,
    async socketFor(context) {
      const secret = await callerOfSecret(context, parts)
      const query = context.query()
      if (query.has('call_id') || query.has('intent')) {
        throw new GatewayError(
          'unsupported_parameter',
          'Sessions by "call_id" or "intent" are not supported: name a "model".',
        )
      }
      const model = secret?.model ?? query.get('model') ?? query.get('deployment') ?? undefined
      if (model === undefined) {
        throw new GatewayError('missing_required_parameter', 'The query must have the "model".', { param: 'model' })
      }
      targetsOf(context.caller, { model, api: 'openai', request_id: context.request_id }, parts)
      context.note.model = model
      const first =
        secret && JSON.stringify({ type: 'session.update', session: { type: 'realtime', ...secret.session } })
      return protocolFor(context, { api: 'openai', model, first }, parts)
    },
  }
}

/** Version 3 of Google's SDK asks for `v1`, those before it for `v1beta`; the events are the same. */
const GEMINI_VERSIONS = ['v1beta', 'v1', 'v1alpha']

function geminiRoute(version: string, parts: Parts): Route {
  return {
    method: 'GET',
    path: geminiLivePath(version),
    ...(version === GEMINI_VERSIONS[0] ? {} : { hidden: true }),
    operation: {
      summary: 'Open a session of the Live API',
      description:
        "A WebSocket with the events of Google's Live API, relayed to the provider of the model that `setup` names. Without an upgrade the answer is 426. The token is sent as `x-goog-api-key` or as `key` of the query.",
      tag: 'Realtime',
      otherResponses: { 101: 'The connection is a WebSocket.' },
      errors: SOCKET_ERRORS,
    },
    handle: needsUpgrade,
    socketFor: (context) => protocolFor(context, { api: 'gemini', model: undefined, first: undefined }, parts),
  }
}

const needsUpgrade = (): never => {
  throw new GatewayError('upgrade_required', 'This path is a WebSocket: send an upgrade request.')
}

type Opening = { api: RealtimeApi; model: string | undefined; first: string | undefined }

function protocolFor(context: Context, { api, model, first }: Opening, parts: Parts): SocketProtocol {
  const { caller, request_id } = context
  const { end_user, session } = context as Call
  const start: SessionStart = {
    caller,
    call: { ...(end_user === undefined ? {} : { end_user }), ...(session === undefined ? {} : { session }) },
    model,
    first,
    api,
    choose: (name) => targetsOf(caller, { model: name, api, request_id }, parts),
  }
  return (socket) => createSession({ ...parts, callerOf: parts.tokens.callerOf }, socket, start)
}

/** The token behind a client secret enters as the caller. Undefined: the caller has presented its token. */
async function callerOfSecret(
  context: Context,
  { secrets, tokens, enterAs }: Parts,
): Promise<ClientSecret | undefined> {
  if (!hasClientSecret(context)) return undefined
  const secret = secrets.read(presentedSecret(context.request) ?? '')
  const caller = secret && (await tokens.callerOf(secret.token_id))
  if (!caller) throw new GatewayError('invalid_api_key', 'The client secret is not valid, or has expired.')
  enterAs(context, caller)
  return secret
}

type TargetRequest = { model: string; api: RealtimeApi; request_id: string }

/** In the order in which they are tried. Throws where the caller may not use the model, or none of its providers has this API. */
function targetsOf(
  caller: Caller,
  { model, api, request_id }: TargetRequest,
  { pipeline, clock }: Parts,
): [Target, ...Target[]] {
  const call: Call = {
    request_id,
    caller,
    signal: new AbortController().signal,
    arrived: clock.steady(),
    is_detached: true,
  }
  pipeline.authorize(call, { family: 'realtime', model })
  const targets = (call.plan?.model.targets ?? []).filter(({ provider }) => provider.realtime?.apis.includes(api))
  const [first, ...others] = inOrder(targets)
  if (first) return [first, ...others]
  const message = `No provider of the model "${model}" has the realtime API of this path: events are not translated.`
  throw new GatewayError('unsupported_value', message, { param: 'model' })
}

/** By priority, and at random by weight within one; those of weight 0 are the last. */
const inOrder = (targets: readonly Target[]): Target[] =>
  targets
    .map((target) => {
      const { priority = 0, weight = 1 } = target
      return { target, priority: weight === 0 ? Number.MAX_VALUE : priority, drawn: Math.random() ** (1 / weight) }
    })
    .sort((a, b) => a.priority - b.priority || b.drawn - a.drawn)
    .map(({ target }) => target)

const checkSecret = checker(ClientSecretRequest)
const DEFAULT_SECONDS = 600

function clientSecretsRoute(parts: Parts): Route {
  const { pipeline, secrets, settings, clock } = parts
  return {
    method: 'POST',
    path: '/v1/realtime/client_secrets',
    operation: {
      summary: 'Make a client secret for a realtime session',
      description:
        'The secret opens sessions of one model with these settings until it expires. It is of the gateway, never of a provider; the limits and budgets of the token that made it count.',
      tag: 'Realtime',
      request: ClientSecretRequest,
      response: ClientSecretAnswer,
      errors: [...MODEL_REQUEST_ERRORS, 'unsupported_value'],
      example: { session: { type: 'realtime', model: 'sandbox/realtime' } },
    },
    async handle(context) {
      const body = await readJson(context.request, bodyLimits(context, 'text', { settings, clock }))
      context.noteFields(body)
      pipeline.authorize(context, { family: 'realtime', model: memberOf(memberOf(body, 'session'), 'model') })
      if (!checkSecret.Check(body)) throw refusalOf(diagnose(ClientSecretRequest, body))
      const { session, expires_after } = body
      const { caller, request_id } = context
      const { model, ...rest } = session as JsonRecord & { model: string }
      const [{ model: upstream_model }] = targetsOf(caller, { model, api: 'openai', request_id }, parts)
      const update = { type: 'session.update', session: rest }
      const is_limited = caller.is_limited === true
      eventsOf('openai').ofClient(update, '', { model, upstream_model, is_limited })
      const expires_at = unixSeconds(clock) + (expires_after?.seconds ?? DEFAULT_SECONDS)
      const value = secrets.make({ token_id: caller.token_id, model, expires_at, session: rest })
      if (value === undefined)
        throw new GatewayError('request_too_large', 'The settings of the session are too long for a client secret.')
      return jsonResponse({ value, expires_at, session: { ...rest, model } }, { context, clock })
    },
  }
}

// Client secrets are signed, not stored. Each is bound to the token that made it, to a model, to the settings of the session, and to a
// time; the limits and budgets of its token count.

const CLIENT_SECRET_PREFIX = 'ek_'

/** Longer ones would not fit into the head of a request. */
const MAX_SECRET_CHARACTERS = 8_000

type ClientSecret = {
  token_id: string
  /** The model as its maker named it. */
  model: string
  /** Unix seconds. */
  expires_at: number
  /** The session that it opens begins with these settings; the client may not change the model. */
  session: JsonRecord
}

/** `master`: a secret of the installation, the same in all its processes. `now`: unix seconds. */
function createClientSecrets({ master, now }: { master: string; now(): number }) {
  const sign = (payload: string) => createHmac('sha256', master).update(`realtime client secret ${payload}`).digest()

  return {
    /** Undefined: its settings are too long. */
    make(secret: ClientSecret): string | undefined {
      const payload = Buffer.from(JSON.stringify(secret)).toString('base64url')
      const text = `${CLIENT_SECRET_PREFIX}${payload}.${sign(payload).toString('base64url')}`
      return text.length > MAX_SECRET_CHARACTERS ? undefined : text
    },
    /** Undefined: it was not made here, or was changed, or has expired. */
    read(text: string): ClientSecret | undefined {
      if (!text.startsWith(CLIENT_SECRET_PREFIX) || text.length > MAX_SECRET_CHARACTERS) return undefined
      const [payload = '', signature = ''] = text.slice(CLIENT_SECRET_PREFIX.length).split('.')
      const [given, right] = [Buffer.from(signature, 'base64url'), sign(payload)]
      if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined
      const secret = parseJson(Buffer.from(payload, 'base64url').toString())
      if (!isRecord(secret) || Number(secret.expires_at) <= now()) return undefined
      return secret as ClientSecret
    },
  }
}
