/** From a vendor's files to the end of the task: where each is kept, for how long, and the success that names them. */
import { unixSeconds } from '../../kit/clock.ts'
import { endingOf } from '../../kit/file-ending.ts'
import type { RemoteOutput } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { MadeOutput, TaskOutput } from '../../spec/task.ts'
import { asGatewayError, end, type Held, within } from './held.ts'
import { modelOf } from './targets.ts'

const DAY_SECONDS = 86_400

export function succeed(held: Held, outputs: TaskOutput[]): Promise<void> {
  const is_kept = outputs.some(({ key }) => key !== undefined)
  const keep_days = modelOf(held)?.keep_days ?? held.settings().keep_days
  const outputs_expire_at = is_kept ? unixSeconds(held.clock) + Math.ceil(keep_days * DAY_SECONDS) : null
  return end(held, { status: 'SUCCESS', outputs, outputs_expire_at })
}

type Bytes = Exclude<RemoteOutput, MadeOutput>

/** Files whose bytes came with the answer are kept at once: there is no link to come back to. */
export async function keepBytes(
  held: Held,
  remote: RemoteOutput[],
): Promise<{ kept: TaskOutput[] } | { error: GatewayError }> {
  const kept: TaskOutput[] = []
  try {
    for (const one of remote) {
      if (!('url' in one)) kept.push(await keepOne(held, one, keyOf(held.task.task_id, kept.length, one)))
    }
    return { kept }
  } catch (error) {
    if (held.stopping()) throw error
    const { task_id, provider } = held.task
    held.log.warn('file not kept', { task_id, provider }) // the cause may name an address
    return { error: asGatewayError(error) }
  }
}

async function keepOne({ outputs, signal, at }: Held, { content_type, open }: Bytes, key: string): Promise<TaskOutput> {
  at('copy: before the first byte')
  const body = await within(signal, open(signal))
  at('copy: in the middle')
  const output = await within(signal, outputs.keep(key, { content_type, body }, signal))
  at('copy: after the last byte')
  return output
}

/** The same for every attempt, so that a copy that was cut goes on: nothing in it changes with a fresh link. */
export const keyOf = (task_id: string, index: number, { content_type = '' }: { content_type?: string }): string =>
  `${task_id}/${index}.${endingOf(content_type) ?? 'mp4'}`
