/** Executes a call whose contents guards check: its request before anything is sent, its answer before the client gets it. */
import { GatewayError } from '../spec/error.ts'
import type { Call, CallRecord } from './call.ts'
import type { AnyMeter, Family } from './family.ts'
import { CallGuards } from './guards/call-guards.ts'
import type { GuardPlan } from './guards/guards.ts'

/** `others`: those of the model that was requested, where another one serves the call. */
export function guardCall(call: Call, record: CallRecord, plan: GuardPlan, others?: GuardPlan): void {
  const tags = call.options?.tags
  const guards = plan.guardsWith(tags)
  const added = others?.guardsWith(tags).filter((guard) => !guards.includes(guard)) ?? []
  record.guards ??= []
  call.guards = new CallGuards([...added, ...guards], { ...plan, call, results: record.guards })
}

type Guarded<Work, Answer> = {
  call: Call
  work: Work
  descriptor: Pick<Family<never, Work, Answer, AnyMeter>, 'guarded' | 'texts'>
}

/** Throws GatewayError where a guard blocks the request or the answer. */
export async function executeGuarded<Work, Answer>(
  { call, work, descriptor }: Guarded<Work, Answer>,
  guards: CallGuards,
  execute: () => Promise<Answer>,
): Promise<Answer> {
  const { guarded, texts } = descriptor
  const { capture } = call
  if (guards.areNone) return await execute()
  if (!guarded) throw notGuarded()
  guards.onBlocked = () => forget(call)
  try {
    await guards.checkInput(guarded.input(work, call), call.exchange?.result !== undefined)
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
