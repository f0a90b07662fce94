/** One response that is made in the background, from its turn to its end. */
import type { AccessNote, Context } from '../http/context.ts'
import { asGatewayError } from '../http/errors.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { Json, JsonObject } from '../spec/task.ts'
import type { Caller } from '../spec/token.ts'
import type { ResponseRun, ResponseRunStore, StoredResponse } from '../store/store.ts'
import type { Chat } from './chat.ts'
import type { Places } from './dialects/client-words.ts'
import { translatedRequest } from './dialects/responses.ts'
import { inClientWords } from './dialects/responses-error.ts'
import type { InputItem, ResponsesRequest } from './dialects/responses-schema.ts'
import { clientTools } from './dialects/responses-tools.ts'
import { createResponsesWriter, type ResponsesWriter } from './dialects/responses-writer.ts'
import { outcomeOf } from './http.ts'
import type { KeptResponses } from './responses-kept.ts'
import { createEventLog, type News } from './responses-told.ts'

export type RunParts = {
  runs: ResponseRunStore
  kept: KeptResponses
  chat: Chat
  /** Whether this token was taken back since it asked. */
  isRevoked(token_id: string): Promise<boolean>
  news: News
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
const LAST_BEFORE_WORDS = 2

export async function makeResponse(parts: RunParts, run: ResponseRun, control: AbortController): Promise<void> {
  const { runs, news, clock, log } = parts
  const { response: stored, told } = run
  const { response_id, token_id } = stored
  const key = { response_id, fence: run.fence }
  const isStream = told >= 0
  const { context, note } = contextOf(stored, control.signal, clock)
  const events = createEventLog({
    clock,
    async write(news_of_it) {
      if (await runs.tell(key, { told: news_of_it })) news.tell(response_id)
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

  const speaking = speakerOf(parts, run)
  try {
    refuseInterrupted(run)
    if (await parts.isRevoked(token_id)) throw new GatewayError('invalid_api_key', REVOKED)
    await speaking.speak({ context, add, begun: (response) => begin(response) })
  } catch (thrown) {
    if (control.signal.reason === LOST) return void log.info('response left', { response_id })
    if (control.signal.reason === STOPPED) return runs.release(key, clock.now())
    const error = asGatewayError(control.signal.reason ?? speaking.told(thrown), { log, request_id: response_id })
    note.error = error.code
    add(speaking.writer().fail(error))
  }
  const response = speaking.writer().made()
  if (response && (await runs.end(key, { response: jsonOf(response), told: await events.rest() }))) {
    const { model = '', input_tokens, output_tokens, error } = note
    log.info('response ended', {
      response_id,
      token_id,
      status: response.status,
      model,
      input_tokens,
      output_tokens,
      error,
    })
  } else log.warn('a response came too late', { response_id })
  news.tell(response_id)

  async function begin(response: unknown): Promise<void> {
    if (!(await runs.tell(key, { response: jsonOf(response) }))) control.abort(LOST)
  }
}

/** What was said to a client cannot be said again in other words, and what brought down two processes may a third. */
function refuseInterrupted({ told, attempts }: ResponseRun): void {
  if (told > LAST_BEFORE_WORDS || attempts > MOST_ATTEMPTS) {
    throw new GatewayError('internal_error', 'The gateway broke off while it made this response.')
  }
}

type Speaking = {
  context: Context
  add(events: string): void
  begun(response: unknown): Promise<void>
}

/** Asks the model, and writes down what it says. */
function speakerOf({ kept, chat, clock }: RunParts, { response: stored, request: body, told }: ResponseRun) {
  const { response_id: id, token_id, created_at: created, previous_id, response } = stored
  const asked = body as unknown as ResponsesRequest
  const head = { id, created, model: String(response.model) }
  const places: Places = new WeakMap()
  const resumed = { number: Math.max(LAST_BEFORE_TURN, told) + 1, hasBegun: told >= LAST_BEFORE_WORDS }
  let wanted = { model: asked.model, messages: [] } as Parameters<Chat['ask']>[0]['request']
  let { names } = clientTools({})
  let writer = writerFor()

  function writerFor(): ResponsesWriter {
    return createResponsesWriter({ head, asked, request: wanted, names, keep: async () => {}, clock, resumed })
  }

  return {
    writer: () => writer,
    told: (thrown: unknown): unknown =>
      thrown instanceof GatewayError ? inClientWords(thrown, wanted, places) : thrown,
    async speak({ context, add, begun }: Speaking): Promise<void> {
      const before = previous_id === null ? { items: [], ids: [] } : await kept.conversation(previous_id, token_id)
      const input = stored.input as unknown as InputItem[]
      const translated = translatedRequest({ ...asked, input }, before, places)
      names = translated.names
      wanted = { ...translated.request, stream: true }
      const chosen = chat.ask({ request: wanted, family: 'chatcompat-response' }, context)
      wanted = chosen.request
      writer = writerFor()
      await begun(writer.begun())
      const { meter } = chosen
      try {
        const speech = await chat.stream(chosen, { head, writer }, context)
        for await (const text of speech.batches) add(String(text))
        context.signal.throwIfAborted()
        const usage = await meter.usage()
        await meter.settle({ error: false })
        add(speech.end(usage))
      } catch (error) {
        await meter.settle(outcomeOf(context.signal.reason ?? error, context))
        throw error
      }
    },
  }
}

/** What the house knows of a request that nobody waits for. Whether its token may use the model was asked when it came. */
function contextOf({ response_id, token_id }: StoredResponse, signal: AbortSignal, clock: Clock) {
  const note: AccessNote = { token_id }
  const caller: Caller = { token_id, mayUseModel: () => true, mayUseFamily: () => true }
  const context: Context = {
    request: new Request('http://gatehouse.invalid/v1/responses'),
    request_id: response_id,
    params: {},
    signal,
    leave() {},
    finish() {},
    caller,
    address: '',
    arrived: clock.now(),
    note,
  }
  return { context, note }
}

const jsonOf = (value: unknown): JsonObject => value as { [name: string]: Json }
