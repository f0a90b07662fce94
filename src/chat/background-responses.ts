/** Responses that are made in the background: written down before they are promised, and made by whoever is free. */
import type { Context } from '../http/context.ts'
import { unixSeconds } from '../kit/clock.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import { applyChatLimits } from '../models/limits.ts'
import type { Family } from '../pipeline/family.ts'
import { GatewayError } from '../spec/error.ts'
import type { JsonObject } from '../spec/task.ts'
import type { ResponseRun } from '../store/store.ts'
import { LOST, makeResponse, type RunParts, STOPPED } from './background-run.ts'
import type { ReadResponse } from './dialects/responses.ts'
import { createResponsesWriter } from './dialects/responses-writer.ts'
import { assertAllowed } from './passthrough.ts'
import { createNotifications, followResponse, toldEvents } from './response-events.ts'

export type Background = {
  /** Takes a request on; the answer is the response before its turn, or the stream of its events. */
  take(read: ReadResponse, context: Context): Promise<Response>
  /** The response, ended now if it had not. Throws `response_not_found`, `invalid_value` where it was not in the background. */
  cancel(response_id: string, token_id: string): Promise<JsonObject>
  /** Its events after this number. Throws `response_not_found`, and `unsupported_parameter` where none were written down. */
  follow(response_id: string, after: number, context: Context): Promise<Response>
  /** It was deleted. */
  drop(response_id: string): void
  start(): void
  stop(options: { deadline_ms: number }): Promise<void>
}

type Accepted = ReadResponse & { id: string; model: string }

type BackgroundParts = Omit<RunParts, 'notifications'> & { settings: { keep_alive_seconds: number } }

/** A process that died is noticed after so long. */
const LEASE_MILLISECONDS = 60_000
/** One that lives says so this often, and hears of a cancel by way of another process. */
const RENEW_MILLISECONDS = 10_000
/** What another process has laid down or taken on is found by looking: this often. */
const LOOK_MILLISECONDS = 1_000
/** At a time, in one process: they mostly wait for their vendors. */
const CONCURRENCY = 100
/** Of one token, under way and waiting: ten minutes' work of one process where each takes a minute. */
const MOST_WAITING = 1_000
/** When a hand may be free again. */
const RETRY_SECONDS = 60
/** The longest that a model may take: an hour. */
const LONGEST_MILLISECONDS = 3_600_000

export function createBackground({ settings, ...given }: BackgroundParts): Background {
  const { runs, storedResponses, pipeline, clock, log } = given
  const notifications = createNotifications({ clock })
  const parts: RunParts = { ...given, notifications }
  const concurrency = new Map<string, { control: AbortController; done: Promise<void> }>()
  let state: 'new' | 'running' | 'stopping' = 'new'
  let looking: Promise<void> | undefined
  let isLookWanted = false
  let cancelTimer = () => {}

  /** One look at a time; a wish that comes meanwhile is another look. */
  function wake(): void {
    if (state !== 'running') return
    isLookWanted = true
    looking ??= look().finally(() => {
      looking = undefined
    })
  }

  async function look(): Promise<void> {
    cancelTimer()
    while (isLookWanted && state === 'running') {
      isLookWanted = false
      try {
        const now_ms = clock.now()
        const claim = { now_ms, until_ms: now_ms + LEASE_MILLISECONDS, limit: CONCURRENCY - concurrency.size }
        for (const run of await runs.claim(claim)) begin(run)
        await storedResponses.forget()
      } catch (error) {
        log.error('responses could not be looked for', {}, error)
      }
    }
    cancelTimer = clock.after(LOOK_MILLISECONDS, wake)
  }

  /** The seam at which a fault of one ends: it never stops the others. */
  function begin(run: ResponseRun): void {
    const { response_id } = run.response
    const control = new AbortController()
    const rest = keepHold(run, control)
    const done = makeResponse(parts, run, control)
      // Its lease runs out, and it is taken in hand once more.
      .catch((error: unknown) => log.error('response given up', { response_id }, error))
      .finally(() => {
        rest()
        concurrency.delete(response_id)
        wake()
      })
    concurrency.set(response_id, { control, done })
  }

  /** Says again and again that it is in these hands. */
  function keepHold({ response, fence }: ResponseRun, control: AbortController): () => void {
    const { response_id } = response
    let cancel = () => {}
    const renew = async () => {
      try {
        if (!(await runs.renew({ response_id, fence }, clock.now() + LEASE_MILLISECONDS))) control.abort(LOST)
      } catch (error) {
        log.error('a response could not be kept in hand', { response_id }, error)
      }
      if (!control.signal.aborted) next()
    }
    const next = () => {
      cancel = clock.after(RENEW_MILLISECONDS, () => void renew())
    }
    next()
    const late = new GatewayError('upstream_timeout', 'The model took longer than an hour.')
    const cancelLate = clock.after(LONGEST_MILLISECONDS, () => control.abort(late))
    return () => {
      control.abort(LOST) // no more renewals
      cancel()
      cancelLate()
    }
  }

  /** Accepts a request: it is stored, and executed later. */
  const acceptance: Family<ReadResponse, Accepted, { response: unknown }, undefined> = {
    endpoint: () => 'chatcompat-response',
    modelOf: ({ request }) => request.model,
    fit(model, { request, ...read }, { caller }) {
      assertAllowed({ request, passthroughRequest: undefined, targets: model.targets }, caller)
      const id = `resp_${randomAlphanumerics(24)}`
      return { ...read, id, model: model.id, request: applyChatLimits(model, request) }
    },
    meter: () => undefined,
    policy: 'until_accepted',
    async execute({ id, model, request, names, clientRequest, before, input }, { call: { caller } }) {
      if ((await runs.waiting(caller.token_id)) >= MOST_WAITING) throw tooMany()
      const head = { id, created: unixSeconds(clock), model }
      const writer = createResponsesWriter({ head, clientRequest, request, names, keep: async () => {}, clock })
      const { response, events } = writer.queued()
      const { input: _, ...rest } = clientRequest
      const row = storedResponses.rowOf(
        { caller, before, input, previous_response_id: clientRequest.previous_response_id },
        response,
      )
      const told = request.stream ? toldEvents(events) : undefined
      await runs.add({ response: row, request: rest as unknown as JsonObject, told, due_ms: clock.now() }, before.ids)
      wake()
      return { response }
    },
  }

  return {
    async take({ clientRequest, before, input, request, names }, context) {
      if (!storedResponses.isStoring()) {
        throw new GatewayError(
          'unsupported_parameter',
          '"background" is not supported: this gateway keeps no responses.',
          {
            param: 'background',
          },
        )
      }
      if (clientRequest.store === false) {
        throw new GatewayError('invalid_value', '"store" must not be false with "background": true.', {
          param: 'store',
        })
      }
      const { work, answer, ...chosen } = await pipeline.run(acceptance, context, {
        clientRequest,
        before,
        input,
        request,
        names,
      })
      const headers = modelHeaders(chosen, clock)
      if (!request.stream) return Response.json(answer.response, { headers })
      return followResponse(
        { runs, notifications, clock, settings },
        { response_id: work.id, after: -1, headers },
        context,
      )
    },

    async cancel(response_id, token_id) {
      const { response } = await storedResponses.find(response_id, token_id)
      if (response.background !== true) {
        throw new GatewayError(
          'invalid_value',
          '"response_id" must be of a response that was made with "background": true.',
          { param: 'response_id' },
        )
      }
      if (response.status !== 'queued' && response.status !== 'in_progress') return response
      const canceled = { ...response, status: 'cancelled' }
      if (!(await runs.cancel(response_id, token_id, canceled)))
        return (await storedResponses.find(response_id, token_id)).response
      drop(response_id)
      return canceled
    },

    async follow(response_id, after, context) {
      await storedResponses.find(response_id, context.caller.token_id)
      if ((await runs.events(response_id, -1)).length === 0) {
        throw new GatewayError(
          'unsupported_parameter',
          '"stream" is not supported here: only a response that was made with "background" and "stream" is told again.',
          { param: 'stream' },
        )
      }
      return followResponse({ runs, notifications, clock, settings }, { response_id, after }, context)
    },

    drop,

    start() {
      if (state !== 'new') return
      state = 'running'
      wake()
    },

    async stop({ deadline_ms }) {
      state = 'stopping'
      cancelTimer()
      await looking
      const all = () => Promise.all([...concurrency.values()].map(({ done }) => done))
      await inTime(all(), deadline_ms)
      for (const { control } of concurrency.values()) control.abort(STOPPED)
      await inTime(all(), LAST_WRITE_MILLISECONDS)
    },
  }

  function drop(response_id: string): void {
    concurrency.get(response_id)?.control.abort(LOST)
    notifications.tell(response_id)
  }

  async function inTime(work: Promise<unknown>, ms: number): Promise<void> {
    if (concurrency.size === 0 || ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(ms, resolve)
    await Promise.race([work, promise])
    cancel()
  }
}

const tooMany = () =>
  new GatewayError(
    'rate_limit_exceeded',
    `This token has ${MOST_WAITING} responses in the background that have not ended: wait for some, or cancel them.`,
    { retry_after: RETRY_SECONDS },
  )

/** How long those that were told to stop have for their last write. */
const LAST_WRITE_MILLISECONDS = 2_000
