/** Stores files that were generated synchronously as the files of a task that has succeeded. */
import type { Call } from '../../calls/call.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { endingOf } from '../../kit/file-type.ts'
import type { Outputs } from '../../outputs/outputs.ts'
import type { Target } from '../../providers/provider.ts'
import type { JsonObject, Task, TaskOutput } from '../../spec/task.ts'
import type { TaskStore } from '../../store/store.ts'
import { kindOf, type TaskFamily } from './order-kinds.ts'
import { newTask } from './submit.ts'

type GeneratedFiles = {
  family: TaskFamily
  /** The model's full public id. */
  model: string
  target: Target
  /** The request without its media. */
  request: JsonObject
  files: { bytes: Uint8Array; content_type: string }[]
  /** `scheme://host` of the links. */
  base_url: string
  /** Undefined: the default. */
  keep_days: number | undefined
}

type StoreParts = {
  store: { tasks: TaskStore }
  outputs: Outputs
  settings(): { deadline_minutes: number; keep_days: number }
  clock: Clock
}

const DAY_SECONDS = 86_400

/**
 * Returns the links of the files, in order. The task is stored before its files, so that after a failure in between the
 * cleaner still finds the files and removes them when they expire.
 */
export function createGeneratedFileStore({ store, outputs, settings, clock }: StoreParts) {
  return async (generated: GeneratedFiles, call: Call): Promise<string[]> => {
    const { family, model, target, files, base_url } = generated
    const now = unixSeconds(clock)
    const blank = newTask({ clock, settings }, { family, call, base_url, model, request: generated.request })
    const names = files.map(({ content_type, bytes }, index): TaskOutput & { key: string } => ({
      key: `${blank.task_id}/${index}.${endingOf(content_type) ?? 'bin'}`,
      content_type,
      bytes: bytes.length,
    }))
    const keep_days = generated.keep_days ?? settings().keep_days
    const task: Task = {
      ...blank,
      status: 'SUCCESS',
      progress: 100,
      start_time: now,
      finish_time: now,
      provider: target.provider.id,
      upstream_model: target.model,
      provider_key: target.key ?? null,
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
        return outputs.keep(names[index]?.key ?? '', { content_type, body }, call.signal)
      }),
    )
    const path = kindOf(family).content_path
    return names.map((_, index) => outputs.link({ base_url, path, task_id: task.task_id, index }))
  }
}
