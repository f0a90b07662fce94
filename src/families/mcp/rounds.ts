/**
 * Calls of clients without a session: where a server asks for input, the request ends with what it asks, and the call goes on
 * when the client repeats the request with the answers.
 */
import { type InputRequests, inputRequired, ProtocolError, type ServerContext } from '@modelcontextprotocol/server'
import type { McpSettings } from '../../config/config.ts'
import type { Clock } from '../../kit/clock.ts'
import { isRecord } from '../../kit/json.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { GatewayError } from '../../spec/error.ts'
import { type ClientChannel, createLeasedConnections } from './own-connections.ts'
import { INVALID_PARAMS } from './rpc-errors.ts'
import { accessOf } from './tool-calls.ts'

type Message = Record<string, unknown>
type Question = { method: string; params: Message; characters: number; answered: PromiseWithResolvers<Message> }

/** Who has made a call, and what is repeated with each of its requests. */
type RoundOwner = { token_id: string; request: string }

type OpenCall = ClientChannel & {
  owner: RoundOwner
  /** How long its client may take to answer. */
  wait_ms: number
  questions: Map<string, Question>
  /** Resolved with the first question that its client does not know. */
  asked: PromiseWithResolvers<void>
  ending: AbortController
  work: Promise<Message>
  /** Whether one of its requests is open. */
  isOpen: boolean
  isDone: boolean
  /** Of a result that its client has not got. */
  characters: number
  forget?: () => void
}

/** Of what servers ask, and of results that came while the client was asked: of one token, and of all. */
const MAX_TOKEN_CHARACTERS = 8 * 1024 * 1024
const MAX_CHARACTERS = 64 * 1024 * 1024

export type Rounds = ReturnType<typeof createRounds>

export function createRounds(parts: { settings(): McpSettings; clock: Clock }) {
  const { clock } = parts
  const connections = createLeasedConnections(parts)
  const calls = new Set<OpenCall>()
  /** Those that wait for their client. */
  const waiting = new Map<string, OpenCall>()
  let isStopping = false

  function fits({ owner }: OpenCall, characters: number): boolean {
    let own = characters
    let all = characters
    for (const one of calls) {
      const kept = [...one.questions.values()].reduce((sum, question) => sum + question.characters, one.characters)
      all += kept
      if (one.owner.token_id === owner.token_id) own += kept
    }
    return own <= MAX_TOKEN_CHARACTERS && all <= MAX_CHARACTERS
  }

  async function ask(one: OpenCall, method: string, given: Message): Promise<Message> {
    // The id of an elicitation by address is of the protocol before.
    const { elicitationId: _, ...params } = given
    const key = randomAlphanumerics(8)
    const question = { method, params, characters: JSON.stringify(params).length, answered: Promise.withResolvers() }
    if (isStopping || one.signal.aborted) throw new Error('The call is ending.')
    if (!fits(one, question.characters)) throw new Error('The client cannot be asked: it is too much.')
    one.questions.set(key, question as Question)
    one.asked.resolve()
    return (await question.answered.promise.finally(() => one.questions.delete(key))) as Message
  }

  function refuse({ questions }: OpenCall): void {
    for (const { answered } of questions.values()) answered.reject(new Error('The call has ended.'))
  }

  function end(one: OpenCall, reason: unknown): void {
    one.ending.abort(reason)
    // The SDK waits for the answers.
    refuse(one)
  }

  function ended(one: OpenCall, result?: Message): void {
    one.isDone = true
    refuse(one)
    // Its client may come for it.
    const characters = result && !one.isOpen ? JSON.stringify(result).length : 0
    if (fits(one, characters)) one.characters = characters
    else leave(one)
  }

  function leave(one: OpenCall): void {
    one.forget?.()
    calls.delete(one)
  }

  /** One request: it ends with the result, or with what is to be answered. */
  async function round(one: OpenCall, context: ServerContext): Promise<Message> {
    one.context = context
    one.isOpen = true
    const signals = [context.mcpReq.signal, accessOf(context).signal]
    const cancel = () => end(one, signals.find(({ aborted }) => aborted)?.reason)
    if (signals.some(({ aborted }) => aborted)) cancel()
    for (const signal of signals) signal.addEventListener('abort', cancel, { once: true })
    try {
      if (one.questions.size === 0) await Promise.race([one.work, one.asked.promise])
      if (!one.isDone && one.questions.size > 0) return question(one)
    } catch (thrown) {
      leave(one)
      throw thrown
    } finally {
      one.isOpen = false
      for (const signal of signals) signal.removeEventListener('abort', cancel)
    }
    leave(one)
    return await one.work
  }

  function question(one: OpenCall): Message {
    const requestState = randomAlphanumerics(32)
    waiting.set(requestState, one)
    const late = new GatewayError('client_closed_request', 'The client has not answered what the server asked in time.')
    const cancel = clock.after(one.wait_ms, () => {
      leave(one)
      end(one, late)
    })
    one.forget = () => {
      cancel()
      waiting.delete(requestState)
    }
    one.asked = Promise.withResolvers()
    const asked = [...one.questions].map(([key, { method, params }]) => [key, { method, params }])
    return inputRequired({ inputRequests: Object.fromEntries(asked) as InputRequests, requestState })
  }

  /** Those that wait for their client. */
  const open = () =>
    [...waiting.values()].map((one) => ({
      ...accessOf(one.context),
      abort(reason: GatewayError) {
        leave(one)
        end(one, reason)
      },
    }))

  return {
    connections,
    /** `work` makes the call, and asks its client by what it gets. */
    async begin(
      { context, owner, wait_ms }: { context: ServerContext; owner: RoundOwner; wait_ms: number },
      work: (channel: ClientChannel) => Promise<Message>,
    ): Promise<Message> {
      const ending = new AbortController()
      const one: OpenCall = {
        context,
        owner,
        wait_ms,
        ending,
        signal: ending.signal,
        ask: (method, params) => ask(one, method, params),
        questions: new Map(),
        asked: Promise.withResolvers(),
        work: Promise.resolve({}),
        isOpen: true,
        isDone: false,
        characters: 0,
      }
      calls.add(one)
      one.work = work(one)
      one.work.then(
        (result) => ended(one, result),
        () => ended(one),
      )
      return await round(one, context)
    },
    /** Goes on with a call; rejects where there is none that waits for these answers. */
    async resume(state: unknown, owner: RoundOwner, context: ServerContext): Promise<Message> {
      const one = waiting.get(String(state))
      if (one?.owner.token_id !== owner.token_id || one.owner.request !== owner.request) throw notWaiting()
      one.forget?.()
      const { inputResponses = {} } = context.mcpReq
      for (const [key, { answered }] of [...one.questions]) {
        const response = Object.hasOwn(inputResponses, key) ? inputResponses[key] : undefined
        if (!isRecord(response)) continue
        one.questions.delete(key)
        answered.resolve(response)
      }
      return await round(one, context)
    },
    open,
    /** Those that wait end: no request would reach them. */
    stop() {
      isStopping = true
      for (const { abort } of open()) abort(new GatewayError('shutting_down', 'The gateway is stopping.'))
    },
    close: connections.close,
  }
}

export const notWaiting = () =>
  new ProtocolError(
    INVALID_PARAMS,
    'No call waits for these answers: it has ended, was made with another token, name or arguments, or by another gateway. Call the tool anew.',
    { reason: 'invalid_request_state' },
  )
