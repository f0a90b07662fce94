/** From a vendor's files to the end of the task: where each is kept, for how long, and the success that names them. */
import { unixSeconds } from '../../kit/clock.ts'
import { endingOf } from '../../kit/file-ending.ts'
import type { RemoteOutput } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { MadeOutput, Task, TaskOutput } from '../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import { asGatewayError, end, type Held, within } from './held.ts'
import { modelOf } from './targets.ts'

const DAY_SECONDS = 86_400

export function succeed(held: Held, outputs: TaskOutput[]): Promise<void> {
  const is_kept = outputs.some(({ key }) => key !== undefined)
  const keep_days = modelOf(held)?.keep_days ?? held.settings().keep_days
  const outputs_expire_at = is_kept ? unixSeconds(held.clock) + Math.ceil(keep_days * DAY_SECONDS) : null
  return end(held, { status: 'SUCCESS', outputs, outputs_expire_at })
}

/** Once the vendor is done, its files have at least this long to be copied: they are paid for. */
export const COPY_SECONDS = 600

export type MadeBytes = Exclude<RemoteOutput, MadeOutput>

/** Files whose bytes came with the answer are kept at once: there is no link to come back to. */
export async function keepBytes(
  held: Held,
  remote: RemoteOutput[],
): Promise<{ kept: TaskOutput[] } | { error: GatewayError }> {
  const kept: TaskOutput[] = []
  try {
    for (const one of remote) {
      if (!('url' in one)) kept.push(await keepOne(held, one, keyOf(held.task, kept.length, one)))
    }
    return { kept }
  } catch (error) {
    if (held.stopping()) throw error
    const { task_id, provider } = held.task
    held.log.warn('file not kept', { task_id, provider }) // the cause may name an address
    return { error: asGatewayError(error) }
  }
}

export async function keepOne(
  { outputs, signal, at }: Held,
  { content_type, open }: MadeBytes,
  key: string,
): Promise<TaskOutput> {
  at('copy: before the first byte')
  const body = await within(signal, open(signal))
  at('copy: in the middle')
  const output = await within(signal, outputs.keep(key, { content_type, body }, signal))
  at('copy: after the last byte')
  return output
}

/** The same for every attempt, so that a copy that was cut goes on: nothing in it changes with a fresh link. */
export function keyOf({ task_id, family }: Task, index: number, { content_type = '' }: { content_type?: string }) {
  return `${task_id}/${index}.${endingOf(content_type) ?? endingOf(kindOf(family).content_type) ?? 'bin'}`
}

/** A file that stays at its vendor, by the operator's wish. */
export const passedThrough = ({ task }: Held, { url, content_type }: MadeOutput): TaskOutput => ({
  url,
  content_type: content_type ?? kindOf(task.family).content_type,
})

export const NOTHING = 'The upstream said that it was done, but gave nothing; often a filter took it away.'
