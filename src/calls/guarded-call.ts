/** Executes a call whose contents guards check: its request before anything is sent, its answer before the client gets it. */
import { GatewayError } from '../spec/error.ts'
import { holdMore } from './admission.ts'
import type { Call, CallRecord } from './call.ts'
import type { AnyMeter, Family } from './family.ts'
import { CallGuards } from './guards/call-guards.ts'
import type { GuardedText } from './guards/content.ts'
import type { GuardPlan } from './guards/guards.ts'

/** `others`: those of the model that was requested, where another one serves the call. */
export function guardCall(call: Call, record: CallRecord, plan: GuardPlan, others?: GuardPlan): void {
  const tags = call.options?.tags
  const guards = plan.guardsWith(tags)
  const added = others?.guardsWith(tags).filter((guard) => !guards.includes(guard)) ?? []
  record.guards ??= []
  call.guards = new CallGuards([...added, ...guards], { ...plan, call, results: record.guards })
}

type Guarded<Work, Answer> = Parameters<typeof holdMore<Work>>[1] & {
  call: Call
  descriptor: Pick<Family<never, Work, Answer, AnyMeter>, 'guarded' | 'texts' | 'estimate' | 'is_admitted'>
}

const lengthOf = (texts: readonly GuardedText[]): number => texts.reduce((sum, { text }) => sum + text.length, 0)

/** Throws GatewayError where a guard blocks the request or the answer. */
export async function executeGuarded<Work, Answer>(
  guarding: Guarded<Work, Answer>,
  guards: CallGuards,
  execute: () => Promise<Answer>,
): Promise<Answer> {
  const { call, work, descriptor } = guarding
  const { guarded, texts } = descriptor
  const { capture } = call
  if (guards.areNone) return await execute()
  if (!guarded) throw notGuarded()
  guards.onBlocked = () => forget(call)
  try {
    const input = guarded.input(work, call)
    const length = lengthOf(input)
    await guards.checkInput(input, call.exchange?.result !== undefined)
    if (lengthOf(input) > length) await holdMore(descriptor, guarding)
  } catch (thrown) {
    forget(call)
    throw thrown
  }
  // What the request log records is what a provider gets.
  if (capture?.is_recorded && texts) capture.input = texts(work)
  const answer = await execute()
  if (!guarded.output || !guards.readsAnswer || (await guards.checkOutput(guarded.output(answer)))) return answer
  throw new AnswerBlocked()
}

/** The provider has answered, so that the call is charged. */
export class AnswerBlocked extends GatewayError {
  constructor() {
    super('content_blocked', 'A guard blocked the answer of the model.')
  }
}

/** Nothing is recorded of contents that were blocked. */
function forget({ capture }: Call): void {
  if (!capture) return
  delete capture.request
  delete capture.input
  delete capture.response
}

const notGuarded = () =>
  new GatewayError('unsupported_endpoint', 'Guards check the calls of this model, and they cannot check this endpoint.')
