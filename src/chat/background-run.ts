/** One response that is made in the background, from its turn to its end. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Call, CallRecord } from '../pipeline/call.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import { asGatewayError, type ErrorCode, GatewayError } from '../spec/error.ts'
import type { Json, JsonObject } from '../spec/task.ts'
import type { Caller } from '../spec/token.ts'
import type { ResponseRun, ResponseRunStore, StoredResponse } from '../store/store.ts'
import type { Chat } from './chat.ts'
import type { Places } from './dialects/client-names.ts'
import { translatedRequest } from './dialects/responses.ts'
import { errorForClient } from './dialects/responses-error.ts'
import type { InputItem, ResponsesRequest } from './dialects/responses-schema.ts'
import { clientTools } from './dialects/responses-tools.ts'
import { createResponsesWriter, type ResponsesWriter } from './dialects/responses-writer.ts'
import { createEventLog, type Notifications } from './response-events.ts'
import type { StoredResponses } from './stored-responses.ts'

export type RunParts = {
  runs: ResponseRunStore
  storedResponses: StoredResponses
  pipeline: Pipeline
  chat: Chat
  /** Whether this token was taken back since it asked. */
  isRevoked(token_id: string): Promise<boolean>
  notifications: Notifications
  clock: Clock
  log: Log
}

/** Why a run is laid down: somebody else has it, or nobody wants it any more. */
export const LOST = new GatewayError('client_closed_request', 'The response was canceled or deleted.')
export const STOPPED = new GatewayError('shutting_down', 'The gateway is being stopped.')

const REVOKED = 'The token that asked for this response was revoked before its turn came.'
/** How often it is begun: a second time where a process died with it in hand. */
const MOST_ATTEMPTS = 2
/** Its creation, and that it waits: what is told of a response before its turn. */
const LAST_BEFORE_TURN = 1
/** The same, and that it is in progress. A model that has said nothing may be asked again. */
const LAST_BEFORE_CONTENT = 2

export async function makeResponse(parts: RunParts, run: ResponseRun, control: AbortController): Promise<void> {
  const { runs, notifications, clock, log } = parts
  const { response: stored, told } = run
  const { response_id, token_id } = stored
  const key = { response_id, fence: run.fence }
  const isStream = told >= 0
  const events = createEventLog({
    clock,
    async write(news_of_it) {
      if (await runs.tell(key, { told: news_of_it })) notifications.tell(response_id)
      else control.abort(LOST)
    },
    fault(error) {
      log.error('events could not be written down', { response_id }, error)
      control.abort(new GatewayError('internal_error', 'What was said could not be written down.'))
    },
  })
  const add = (text: string) => {
    if (isStream) events.add(text)
  }

  let failure: ErrorCode | undefined
  const speaking = speakerOf(parts, run)
  try {
    refuseInterrupted(run)
    if (await parts.isRevoked(token_id)) throw new GatewayError('invalid_api_key', REVOKED)
    await speaking.speak({ call: callOf(stored, control.signal, clock), add, begun: (response) => begin(response) })
  } catch (thrown) {
    if (control.signal.reason === LOST) return void log.info('response left', { response_id })
    if (control.signal.reason === STOPPED) return runs.release(key, clock.now())
    const error = asGatewayError(control.signal.reason ?? speaking.told(thrown), { log, request_id: response_id })
    failure = error.code
    add(speaking.writer().fail(error))
  }
  const response = speaking.writer().made()
  if (response && (await runs.end(key, { response: jsonOf(response), told: await events.rest() }))) {
    const { model = '', units, error = failure } = speaking.record() ?? {}
    log.info('response ended', {
      response_id,
      token_id,
      status: response.status,
      model,
      input_tokens: units?.input_tokens,
      output_tokens: units?.output_tokens,
      error,
    })
  } else log.warn('a response came too late', { response_id })
  notifications.tell(response_id)

  async function begin(response: unknown): Promise<void> {
    if (!(await runs.tell(key, { response: jsonOf(response) }))) control.abort(LOST)
  }
}

/** What was said to a client cannot be said again in other words, and what brought down two processes may a third. */
function refuseInterrupted({ told, attempts }: ResponseRun): void {
  if (told > LAST_BEFORE_CONTENT || attempts > MOST_ATTEMPTS) {
    throw new GatewayError('internal_error', 'The gateway broke off while it made this response.')
  }
}

type Speaking = {
  call: Call
  add(events: string): void
  begun(response: unknown): Promise<void>
}

/** Calls the model, and hands on the encoded answer. */
function speakerOf(
  { storedResponses, pipeline, chat, clock }: RunParts,
  { response: stored, request: body, told }: ResponseRun,
) {
  const { response_id: id, token_id, created_at: created, previous_id, response } = stored
  const clientRequest = body as unknown as ResponsesRequest
  const head = { id, created, model: String(response.model) }
  const places: Places = new WeakMap()
  const resumed = { number: Math.max(LAST_BEFORE_TURN, told) + 1, hasBegun: told >= LAST_BEFORE_CONTENT }
  let wanted: ChatRequest = { model: clientRequest.model, messages: [] }
  let { names } = clientTools({})
  let writer = writerFor(wanted)
  let record: Readonly<CallRecord> | undefined

  function writerFor(request: ChatRequest): ResponsesWriter {
    return createResponsesWriter({ head, clientRequest, request, names, keep: async () => {}, clock, resumed })
  }

  return {
    writer: () => writer,
    record: () => record,
    told: (thrown: unknown): unknown =>
      thrown instanceof GatewayError ? errorForClient(thrown, wanted, places) : thrown,
    async speak({ call, add, begun }: Speaking): Promise<void> {
      const before =
        previous_id === null ? { items: [], ids: [] } : await storedResponses.conversation(previous_id, token_id)
      const input = stored.input as unknown as InputItem[]
      const translated = translatedRequest({ ...clientRequest, input }, before, places)
      names = translated.names
      wanted = { ...translated.request, stream: true }
      let failure: GatewayError | undefined
      const family: Chat['stream'] = {
        ...chat.stream,
        async execute(work, execution) {
          await begun(writer.begun())
          return chat.stream.execute(work, execution)
        },
        encodeError(error) {
          failure = error
          return ''
        },
      }
      const streaming = pipeline.stream(family, call, {
        family: 'chatcompat-response',
        request: wanted,
        answer: { id, created },
        writer(_, request) {
          wanted = request
          writer = writerFor(request)
          return writer
        },
      })
      record = streaming.record
      for await (const text of streaming.parts) {
        // What follows is the estimate of its usage, which may take longer than a gateway that is stopped has left.
        if (failure) throw failure
        add(String(text))
      }
    },
  }
}

/** A call that no client waits for. Whether its token may use the model was checked when the request was accepted. */
function callOf({ response_id, token_id }: StoredResponse, signal: AbortSignal, clock: Clock): Call {
  const caller: Caller = { token_id, mayUseModel: () => true, mayUseFamily: () => true }
  return { request_id: response_id, caller, signal, arrived: clock.now() }
}

const jsonOf = (value: unknown): JsonObject => value as { [name: string]: Json }
