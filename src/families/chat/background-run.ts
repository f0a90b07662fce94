/** Generates one background response, from its claim to its end. */
import type { Call, CallRecord } from '../../calls/call.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import { type JobContext, LEASE_LOST, STOPPED } from '../../jobs/job-loop.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { isCompaction } from '../../protocols/responses/client/compaction.ts'
import { errorForClient } from '../../protocols/responses/client/error.ts'
import type { Conversation } from '../../protocols/responses/client/items.ts'
import { conversationId, translatedRequest } from '../../protocols/responses/client/request.ts'
import { createResponsesEncoder, type ResponsesEncoder } from '../../protocols/responses/client/response.ts'
import type { InputItem } from '../../protocols/responses/client/schema.ts'
import { clientTools } from '../../protocols/responses/client/tools.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import { asGatewayError, type ErrorCode, GatewayError } from '../../spec/error.ts'
import type { Json, JsonObject } from '../../spec/task.ts'
import type { Caller } from '../../spec/token.ts'
import type { Appending } from '../../store/responses/conversation-store.ts'
import type { ResponseRun, ResponseRunStore } from '../../store/responses/response-store.ts'
import type { FileInputs } from '../files/file-inputs.ts'
import type { Chat } from './chat.ts'
import type { Continued, Conversations } from './conversations.ts'
import { createEventLog, type Notifications } from './response-events.ts'
import { readStoredRequest } from './run-request.ts'
import { sentItems } from './sent-items.ts'
import type { StoredResponses } from './stored-responses.ts'

export type RunParts = {
  runs: ResponseRunStore
  storedResponses: StoredResponses
  conversations: Conversations
  fileInputs: FileInputs
  pipeline: Pipeline
  chat: Chat
  /** The caller that this token makes now; undefined: it was revoked since the request, or its project was disabled. */
  callerOf(token_id: string): Promise<Caller | undefined>
  notifications: Notifications
  clock: Clock
  log: Log
}

const REVOKED = 'The token that requested this response was revoked, or its project disabled, before it was generated.'
/** A second attempt follows when a process died during the first. */
const MOST_ATTEMPTS = 2
/** How long a response waits for a rate limit, from its acceptance on. */
const LONGEST_WAIT_MILLISECONDS = 3_600_000
/** The events that a queued response has: `response.created` and `response.queued`. */
const LAST_QUEUED_EVENT = 1
/** The same, and `response.in_progress`. A model of which the client saw no output may be called again. */
const LAST_BEFORE_CONTENT = 2

/**
 * Rejects when the run was interrupted: the job loop decides how it continues. The result is the time (unix milliseconds)
 * when a run is due again that a rate limit has refused.
 */
export async function generateResponse(
  parts: RunParts,
  run: ResponseRun,
  { signal, abort }: Pick<JobContext, 'signal' | 'abort'>,
): Promise<number | undefined> {
  const { runs, notifications, clock, log } = parts
  const { response: stored, last_number } = run
  const { response_id, token_id } = stored
  const key = { response_id, fence: run.fence }
  const isStream = last_number >= 0
  const events = createEventLog({
    clock,
    async write(batch) {
      if (await runs.save(key, { events: batch })) notifications.notify(response_id)
      else abort(LEASE_LOST)
    },
    fault(error) {
      log.error('response events not stored', { response_id }, error)
      abort(new GatewayError('internal_error', 'The response could not be stored.'))
    },
  })
  const add = (text: string) => {
    if (isStream) events.add(text)
  }

  let failure: ErrorCode | undefined
  const generator = generatorOf(parts, run)
  try {
    assertNotInterrupted(run)
    const caller = await parts.callerOf(token_id)
    if (!caller) throw new GatewayError('invalid_api_key', REVOKED)
    const { options, capture } = readStoredRequest(run.request)
    const call: Call = { request_id: response_id, caller, signal, arrived: clock.steady(), is_detached: true }
    if (run.end_user !== undefined) call.end_user = run.end_user
    if (options) call.options = options
    if (capture) call.capture = capture
    await generator.generate({ call, add, onStart: saveStarted })
  } catch (thrown) {
    if (signal.reason === LEASE_LOST || signal.reason === STOPPED) throw thrown
    const error = asGatewayError(signal.reason ?? generator.errorForClient(thrown), { log, request_id: response_id })
    if (generator.record()?.is_refused && error.code === 'rate_limit_exceeded') {
      const due_ms = clock.now() + (error.detail.retry_after ?? 1) * 1000
      if (due_ms < stored.created_at * 1000 + LONGEST_WAIT_MILLISECONDS) {
        await runs.release(key, due_ms)
        return due_ms
      }
    }
    failure = error.code
    add(generator.writer().fail(error))
  }
  const response = generator.writer().final()
  const ending = response && {
    response: jsonOf(response),
    events: await events.rest(),
    appending: generator.appending(jsonOf(response)),
  }
  if (ending && (await runs.end(key, ending))) {
    const { model = '', units, error = failure } = generator.record() ?? {}
    log.info('response ended', {
      response_id,
      token_id,
      status: response?.status,
      model,
      input_tokens: units?.input_tokens,
      output_tokens: units?.output_tokens,
      error,
    })
  } else log.warn('response ended after its lease', { response_id })
  notifications.notify(response_id)
  return undefined

  async function saveStarted(response: unknown): Promise<void> {
    if (!(await runs.save(key, { response: jsonOf(response) }))) abort(LEASE_LOST)
  }
}

/** A client that saw output cannot get a different one, and a run that crashed two processes may crash a third. */
function assertNotInterrupted({ last_number, attempts }: ResponseRun): void {
  if (last_number > LAST_BEFORE_CONTENT || attempts > MOST_ATTEMPTS) {
    throw new GatewayError('internal_error', 'The gateway was interrupted while it generated this response.')
  }
}

type Generation = {
  call: Call
  add(events: string): void
  /** The response is in progress: it is stored before the model is called. */
  onStart(response: unknown): Promise<void>
}

/** Calls the model, and passes on the encoded response. */
function generatorOf(
  { storedResponses, conversations, fileInputs, pipeline, chat, clock }: RunParts,
  { response: stored, request: body, last_number }: ResponseRun,
) {
  const { response_id: id, token_id, created_at: created, previous_id, response } = stored
  const { clientRequest } = readStoredRequest(body)
  const head = { id, created, model: String(response.model) }
  const resumed = {
    number: Math.max(LAST_QUEUED_EVENT, last_number) + 1,
    hasStarted: last_number >= LAST_BEFORE_CONTENT,
  }
  let chatRequest: ChatRequest = { model: clientRequest.model, messages: [] }
  let { names } = clientTools({})
  let writer = writerFor(chatRequest)
  let record: Readonly<CallRecord> | undefined
  const conversation_id = conversationId(clientRequest)
  /** Known once the model is about to be called. */
  let continued: Continued | undefined

  async function conversationBefore(): Promise<Conversation> {
    if (previous_id !== null) return await storedResponses.conversation(previous_id, token_id)
    if (conversation_id === undefined) return { items: [], ids: [] }
    continued = await conversations.read({ conversation_id, token_id })
    return continued.before
  }

  function writerFor(request: ChatRequest): ResponsesEncoder {
    return createResponsesEncoder({
      head,
      clientRequest,
      request,
      names,
      isCompaction: isCompaction(stored.input as unknown as InputItem[]),
      store: async () => {},
      clock,
      resumed,
    })
  }

  return {
    writer: () => writer,
    record: () => record,
    /** The items of the response, for its conversation. */
    appending(ended: JsonObject): Appending | undefined {
      if (conversation_id === undefined) return undefined
      return conversations.appendingOf(stored, ended, { conversation_id, ids: continued?.ids ?? new Set() })
    },
    errorForClient: (thrown: unknown): unknown =>
      thrown instanceof GatewayError ? errorForClient(thrown, chatRequest) : thrown,
    async generate({ call, add, onStart }: Generation): Promise<void> {
      const items = { before: await conversationBefore(), input: stored.input as unknown as InputItem[] }
      const { before, input } = await sentItems(items, fileInputs, call)
      const translated = translatedRequest({ ...clientRequest, input }, before)
      names = translated.names
      chatRequest = { ...translated.request, stream: true }
      let failure: GatewayError | undefined
      const family: Chat['stream'] = {
        ...chat.stream,
        // Nobody waits for its first byte; and of two attempts at once, that of the last writer would have to win.
        is_hedged: false,
        beforeSend: () => onStart(writer.started()),
        encodeError(error) {
          failure = error
          return ''
        },
      }
      const prepared = pipeline.prepareStream(family, call, {
        family: 'chatcompat-response',
        request: chatRequest,
        answer: { id, created },
        writer(_, request) {
          chatRequest = request
          writer = writerFor(request)
          return writer
        },
      })
      const sent = prepared.send()
      record = sent.record
      for await (const text of sent.parts) {
        // The stream continues with an estimate of the usage, which may take longer than a stopping gateway has left.
        if (failure) throw failure
        add(String(text))
      }
    },
  }
}

const jsonOf = (value: unknown): JsonObject => value as { [name: string]: Json }
