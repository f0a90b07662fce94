/** Guards that ask: a moderation model, a chat model that classifies, or a service. Their calls are those of the same caller. */
import type { Call } from '../calls/call.ts'
import type { Answered, AskGuard, Verdict } from '../calls/guards/guard.ts'
import type { Pipeline } from '../calls/pipeline.ts'
import { runAside } from '../calls/side-call.ts'
import type { GuardConfig, QUESTION_KINDS } from '../config/schema/guard-schema.ts'
import { askChat } from '../families/chat/ask-chat.ts'
import type { Chat } from '../families/chat/chat.ts'
import type { ModerationsFamily } from '../families/moderations/moderations.ts'
import { signatureHeaders } from '../jobs/signed-post.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import { isRecord } from '../kit/json.ts'
import type { Log } from '../kit/log.ts'
import { readAll } from '../kit/read-all.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import { MAX_MODERATION_TEXTS, type ModerationResult } from '../spec/moderation-request.ts'
import type { AccountLimits, Caller } from '../spec/token.ts'
import { awsHeaders, GUARD_SERVICES } from './guard-services.ts'

const DEFAULT_TIMEOUT_MS = 5_000
/** A model needs as long as for its answer. */
const REPAIR_TIMEOUT_MS = 60_000
const MAX_ANSWER_BYTES = 16_000_000
/** How an answer of a classifier begins that blocks. */
const UNSAFE = ['unsafe', 'yes', 'true']
const CLASSIFIER_TOKENS = 256
/** Of a service that has refused a question: of other errors nothing is logged, since they may contain the texts. */
const STATUS = /^status \d{3}$/

type AskParts = {
  /** Called later: the pipeline itself uses the result. */
  pipeline: () => Pick<Pipeline, 'run'>
  chat: () => Chat
  moderations: ModerationsFamily
  guardedFetch: GuardedFetch
  clock: Clock
  log: Log
}

export function createAskGuard({ pipeline, chat, moderations, guardedFetch, clock, log }: AskParts): AskGuard {
  /** The JSON that a service answers. */
  async function post({ url = '' }: GuardConfig, body: string, headers: Record<string, string>, signal: AbortSignal) {
    const answer = await guardedFetch({
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'Gatehouse',
        ...headers,
      },
      body,
      signal,
      redirects: 0,
      private_origins: [URL.parse(url)?.origin ?? ''], // the operator names it
    })
    if (answer.status !== 200) {
      void answer.body.cancel().catch(() => {})
      throw new Error(`status ${answer.status}`)
    }
    const bytes = await readAll(answer.body, () => new Error('too large'), MAX_ANSWER_BYTES)
    return JSON.parse(new TextDecoder().decode(bytes)) as unknown
  }

  /** The text of the answer to a chat request. */
  async function answerTo({ family, request }: Answered, call: Call): Promise<string> {
    const answer = { id_prefix: 'chatcmpl-' }
    const { completion } = await askChat({ pipeline: pipeline(), chat: chat() }, call, { family, request, answer })
    const text = completion.choices[0]?.message.content?.trim()
    if (!text) throw new Error('no answer')
    return text
  }

  const services: Record<QuestionKind | 'schema', (question: Question, call: Call) => Promise<Verdict>> = {
    async moderation({ config, texts }, call) {
      const input = texts.length > MAX_MODERATION_TEXTS ? [texts.join('\n')] : [...texts]
      const { answer } = await pipeline().run(moderations, call, { model: config.model ?? '', input })
      const blocks = answer.some((result) => isBlocked(result, config))
      return { action: blocks ? 'block' : 'pass' }
    },

    async classifier(
      { config: { model = '', instructions, unsafe = UNSAFE, threshold = 0.5, categories }, texts },
      call,
    ) {
      const system = instructions ? [{ role: 'system' as const, content: instructions }] : []
      const messages = [...system, { role: 'user' as const, content: texts.join('\n\n') }]
      const text = await answerTo(
        { family: 'chatcompat', request: { model, messages, max_tokens: CLASSIFIER_TOKENS } },
        call,
      )
      const number = Number(text.split(/\s/)[0])
      const blocks = Number.isNaN(number)
        ? unsafe.some((word) => text.toLowerCase().startsWith(word.toLowerCase())) && isListed(text, categories)
        : number >= threshold
      return { action: blocks ? 'block' : 'pass' }
    },

    async schema({ config: { schema }, texts: [text = '', problem], answered }, call) {
      if (!answered) throw new Error('no request')
      const { n: _, stream: __, stream_options: ___, messages, ...rest } = answered.request
      const content = `Your answer does not fit its JSON Schema: ${problem}. Answer again, with JSON alone that fits it: ${JSON.stringify(schema)}`
      const answer = text === '' ? [] : [{ role: 'assistant' as const, content: text }]
      const asked = [...messages, ...answer, { role: 'user' as const, content }]
      return {
        action: 'replace',
        texts: [await answerTo({ ...answered, request: { ...rest, messages: asked } }, call)],
      }
    },

    async webhook({ name, on, config, texts: given }, { request_id, caller, signal }) {
      const { format, key, secret, aws, url = '' } = config
      // A service could fail at half of a character, and one that fails may let a text pass.
      const texts = given.map((text) => text.toWellFormed())
      if (format) {
        const { keyHeader, decide } = GUARD_SERVICES[format]
        return await decide({ config, on, texts }, async (question) => {
          const body = JSON.stringify(question)
          const own = aws ? await awsHeaders({ aws, url, body, now_ms: clock.now() }) : key ? keyHeader(key) : {}
          return await post(config, body, own, signal)
        })
      }
      const { token_id, project_id = null } = caller
      const body = JSON.stringify({ guard: name, on, request_id, token_id, project_id, texts })
      const signed = { secret: secret ?? '', id: `guard_${randomAlphanumerics(24)}`, timestamp: unixSeconds(clock) }
      return readVerdict(await post(config, body, secret ? signatureHeaders(signed, body) : {}, signal), texts.length)
    },
  }

  return async ({ call, ...question }) => {
    const { name, config, on } = question
    const decide = services[config.kind as keyof typeof services]
    const timeout_ms = config.timeout_ms ?? (config.kind === 'schema' ? REPAIR_TIMEOUT_MS : DEFAULT_TIMEOUT_MS)
    const side = { timeout_ms, clock, what: `The guard "${name}" did not decide`, caller: guardCaller(call.caller) }
    try {
      return await runAside(call, side, (own) => decide(question, own))
    } catch (thrown) {
      const status = thrown instanceof Error ? STATUS.exec(thrown.message)?.[0] : undefined
      const reason = thrown instanceof GatewayError ? thrown.code : (status ?? 'no_decision')
      if (!call.signal.aborted)
        log.warn('guard without a decision', { request_id: call.request_id, guard: name, on, reason })
      throw thrown
    }
  }
}

type QuestionKind = (typeof QUESTION_KINDS)[number]
type Question = { name: string; config: GuardConfig; on: string; texts: readonly string[]; answered?: Answered }

const guardCallers = new WeakMap<Caller, Caller>()

/**
 * The caller, charged as for its own calls. It may use the model that the operator has chosen, and is not refused by rate
 * limits, one of which the call that waits may have used up.
 */
function guardCaller(caller: Caller): Caller {
  const known = guardCallers.get(caller)
  if (known) return known
  const { project, ...own } = withoutLimits(caller)
  const own_caller: Caller = {
    ...own,
    ...(project && { project: withoutLimits(project) }),
    is_limited: false,
    is_unguarded: true,
    mayUseModel: () => true,
    mayUseFamily: () => true,
  }
  guardCallers.set(caller, own_caller)
  return own_caller
}

/**
 * Whether an answer in the form of Llama Guard, `unsafe` and a line such as `S1,S10`, names one of these categories. One
 * that names none is of all.
 */
function isListed(text: string, categories: readonly string[] | undefined): boolean {
  const found = (text.split('\n')[1] ?? '')
    .toUpperCase()
    .split(/[\s,]+/)
    .filter(Boolean)
  return !categories || found.length === 0 || categories.some((one) => found.includes(one.toUpperCase()))
}

/** Budgets stay. */
const withoutLimits = <Account extends AccountLimits>({ rate_limits: _, end_users: __, ...account }: Account) => account

function isBlocked(
  { flagged, categories, category_scores }: ModerationResult,
  asked: Pick<GuardConfig, 'categories' | 'threshold'>,
): boolean {
  const names = asked.categories ?? Object.keys(category_scores)
  const { threshold } = asked
  if (threshold !== undefined) return names.some((name) => (category_scores[name] ?? 0) >= threshold)
  return asked.categories ? names.some((name) => categories[name] === true) : flagged
}

/** Throws Error for anything else than a verdict. */
function readVerdict(answer: unknown, count: number): Verdict {
  if (!isRecord(answer)) throw new Error('no verdict')
  const { action, texts } = answer
  if (action === 'pass' || action === 'block') return { action }
  const areTexts = Array.isArray(texts) && texts.length === count && texts.every((text) => typeof text === 'string')
  if (action === 'replace' && areTexts) return { action, texts }
  throw new Error('no verdict')
}
