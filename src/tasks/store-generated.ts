/** Keeps files that were made at once, outside the engine, as those of a task that has ended well. */
import type { Context } from '../http/context.ts'
import { unixSeconds } from '../kit/clock.ts'
import { endingOf } from '../kit/file-ending.ts'
import type { Outputs } from '../outputs/outputs.ts'
import type { Target } from '../providers/provider.ts'
import type { JsonObject, Task, TaskOutput } from '../spec/task.ts'
import type { TaskStore } from '../store/store.ts'
import { kindOf, type TaskFamily } from './order-kinds.ts'
import { baseUrlOf } from './request-parameters.ts'
import { newTask } from './submit.ts'
import type { TaskApiParts } from './task-api.ts'

type GeneratedFiles = {
  family: TaskFamily
  /** The model's full public id. */
  model: string
  target: Target
  /** What was asked for, without its media. */
  request: JsonObject
  files: { bytes: Uint8Array; content_type: string }[]
  /** Undefined: as all. */
  keep_days: number | undefined
}

type KeepParts = Pick<TaskApiParts, 'settings' | 'clock'> & {
  store: { tasks: TaskStore }
  outputs: Outputs
  task_settings(): { deadline_minutes: number; keep_days: number }
}

const DAY_SECONDS = 86_400

/**
 * The links of the files, in their order. The task is stored before its files are: whatever happens in between, the
 * cleaner finds them and removes them when they expire.
 */
export function createGeneratedFileStore({ store, outputs, settings, clock, task_settings }: KeepParts) {
  return async (made: GeneratedFiles, { request, caller, signal }: Context): Promise<string[]> => {
    const { family, model, target, files } = made
    const now = unixSeconds(clock)
    const base_url = baseUrlOf(request, settings)
    const blank = newTask(
      { clock, settings: task_settings },
      { family, caller, base_url, model, request: made.request },
    )
    const names = files.map(({ content_type, bytes }, index): TaskOutput & { key: string } => ({
      key: `${blank.task_id}/${index}.${endingOf(content_type) ?? 'bin'}`,
      content_type,
      bytes: bytes.length,
    }))
    const keep_days = made.keep_days ?? task_settings().keep_days
    const task: Task = {
      ...blank,
      status: 'SUCCESS',
      progress: 100,
      start_time: now,
      finish_time: now,
      provider: target.provider.id,
      upstream_model: target.model,
      sent_at: now,
      sent_to: null,
      outputs: names,
      outputs_expire_at: now + Math.ceil(keep_days * DAY_SECONDS),
      due_ms: null,
    }
    await store.tasks.add({ task })
    await Promise.all(
      files.map(({ bytes, content_type }, index) => {
        const body = new Blob([new Uint8Array(bytes)]).stream()
        return outputs.keep(names[index]?.key ?? '', { content_type, body }, signal)
      }),
    )
    const path = kindOf(family).content_path
    return names.map((_, index) => outputs.link({ base_url, path, task_id: task.task_id, index }))
  }
}
