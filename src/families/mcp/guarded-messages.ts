/** Passes on what a server sends to its client before the result, and what the client answers, as guards of open calls allow. */
import type { Call } from '../../calls/call.ts'
import { type GuardedText, jsonAt, textAt } from '../../calls/guards/content.ts'
import { isRecord } from '../../kit/json.ts'
import type { Progress } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { answerTexts, logTexts, questionTexts } from './message-texts.ts'

type Guarded = Pick<Call, 'guards'>
type Message = Record<string, unknown>

/** A server that writes without end fills no memory, and makes no caller pay for questions without end. */
const MAX_WAITING = 256
const MAX_QUESTIONS = 20

async function passesOutput(calls: readonly Guarded[], texts: readonly GuardedText[]): Promise<boolean> {
  for (const { guards } of calls) if (guards?.readsAnswer && !(await guards.checkOutput(texts))) return false
  return true
}

export type Notices = ReturnType<typeof createNotices>

/** Of one call, in the order in which they come. Those of which guards would ask too often do not pass. */
export function createNotices() {
  let last: Promise<void> | undefined
  let waiting = 0
  let questions = 0

  function check(calls: readonly Guarded[], texts: readonly GuardedText[], send: (passes: boolean) => void): void {
    const reading = calls.filter(({ guards }) => guards?.readsAnswer)
    if (!last && reading.length === 0) {
      send(true)
      return
    }
    if (waiting >= MAX_WAITING) return
    waiting++
    const isAsked = reading.some(({ guards }) => guards?.asksAboutAnswer)
    const mayPass = !isAsked || ++questions <= MAX_QUESTIONS
    last = (last ?? Promise.resolve()).then(async () => {
      const passes = mayPass && (await passesOutput(reading, texts).catch(() => false))
      waiting--
      send(passes)
    })
  }

  return {
    /** One whose message is blocked has none. */
    progress({ message, ...numbers }: Progress, call: Guarded, send: (progress: Progress) => void): void {
      const one = { message }
      check([call], textAt(one, 'message'), (passes) => send(passes ? { ...numbers, ...one } : numbers))
    },
    /** One that is blocked is not sent. `calls`: the protocol does not say of which of them it is. */
    log(params: Message, calls: readonly Guarded[], send: () => void): void {
      check(calls, logTexts(params), (passes) => passes && send())
    },
    ended: async () => await last,
  }
}

async function assertInput(calls: readonly Guarded[], texts: readonly GuardedText[]): Promise<void> {
  for (const { guards } of calls) {
    await guards?.checkInput(texts).catch(() => {
      guards.onBlocked?.()
      throw blocked('what the client has answered')
    })
  }
}

const blocked = (what: string) => new GatewayError('content_blocked', `A guard blocked ${what}.`)

type Asked = { method: string; params: Message; calls: readonly Guarded[] }

/** A request of a server to the client, and the answer. Rejects with content_blocked. */
export async function askThroughGuards(
  { method, params, calls }: Asked,
  ask: () => Promise<Message>,
): Promise<Message> {
  if (!(await passesOutput(calls, questionTexts(method, params)))) throw blocked('the request to the client')
  const answer = await ask().catch(async (thrown) => {
    // The client may have written it.
    if (isRecord(thrown)) await assertInput(calls, [...textAt(thrown, 'message'), ...jsonAt(thrown, 'data')])
    throw thrown
  })
  await assertInput(calls, answerTexts(method, answer))
  return answer
}
