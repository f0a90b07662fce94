/** The steps that bring a vendor's files into the gateway's own storage, one file after the other, bit by bit. */
import type { Copied, CopySource } from '../../outputs/outputs.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { ComingOutput, MadeOutput } from '../../spec/task.ts'
import { nextAttempt } from '../cadence.ts'
import { reasonFrom } from './fail-code.ts'
import { keyOf, NOTHING, passedThrough, succeed } from './finish.ts'
import { asGatewayError, fail, type Held, vendorOf, within, write } from './held.ts'
import { linksOf, look } from './look.ts'
import { doubt } from './send.ts'

export async function copy(held: Held, made: ComingOutput[]): Promise<void> {
  const { task } = held
  const [file, ...rest] = made
  if (!file) return task.outputs.length > 0 ? succeed(held, task.outputs) : fail(held, 'no_output', NOTHING)
  if ('key' in file) return found(held, file.key, { made, rest })
  if (held.providerSettings(task.provider)?.outputs === 'passthrough') {
    return copied(held, { done: true, output: passedThrough(held, file) }, { made, rest })
  }
  const answer = await fetchFile(held, file)
  if ('error' in answer) {
    const { error } = answer
    return error.code === 'output_gone' ? refresh(held, { made, dead: file, error }) : missed(held, error, made)
  }
  await copied(held, answer.copied, { made, rest })
}

/** Bytes that came with the vendor's answer: they are where they were to be put, or nowhere any more. */
async function found(held: Held, key: string, files: Files): Promise<void> {
  const { task, outputs, log } = held
  const there = await outputs.open(key)
  if (there) {
    const { content_type, bytes } = there
    return copied(held, { done: true, output: { key, content_type, bytes } }, files)
  }
  log.error('a paid file was lost before it was kept', { task_id: task.task_id, provider: task.provider })
  if (vendorOf(held)?.resubmit !== 'safe') return fail(held, 'output_expired', LOST)
  // The same order with the same key is the same order: it is asked for what it has made once more.
  await doubt(held)
}

type Answer = { copied: Copied } | { error: GatewayError }

async function fetchFile(held: Held, file: MadeOutput): Promise<Answer> {
  const { task, signal, outputs, at } = held
  const key = keyOf(task, task.outputs.length, file)
  at('copy: before the first byte')
  try {
    const work = outputs.copy(key, sourceOf(held, file), { until_ms: held.copy_until_ms, signal })
    return { copied: await within(signal, work) }
  } catch (error) {
    if (held.stopping()) throw error
    return { error: asGatewayError(error) }
  }
}

/** A file at the provider's own address may need its key, and may lie where the operator said that the provider is. */
function sourceOf(held: Held, { url, content_type }: MadeOutput): CopySource {
  const settings = held.providerSettings(held.task.provider)
  const headers = vendorOf(held)?.outputHeaders?.(url)
  return {
    url,
    private_addresses: settings?.private_addresses ?? false,
    ...(headers && { headers }),
    ...(content_type !== undefined && { content_type }),
    ...(settings?.base_url !== undefined && { own_origin: new URL(settings.base_url).origin }),
  }
}

type Files = { made: ComingOutput[]; rest: ComingOutput[] }

async function copied(held: Held, answer: Copied, { made, rest }: Files): Promise<void> {
  const due_ms = held.clock.now()
  if (!answer.done) {
    held.at('copy: in the middle')
    await write(held, 'copy', { made, failures: 0, due_ms })
    return
  }
  held.at('copy: after the last byte')
  const outputs = [...held.task.outputs, answer.output]
  if (rest.length === 0) return succeed(held, outputs)
  await write(held, 'copy', { made: rest, outputs, failures: 0, due_ms })
}

type Dead = { made: ComingOutput[]; dead: MadeOutput; error: GatewayError }

/** The link is dead: links expire sooner than what they lead to. The vendor is asked for fresh ones, once. */
async function refresh(held: Held, { made, dead, error }: Dead): Promise<void> {
  const vendor = vendorOf(held)
  if (!vendor) return missed(held, error, made)
  const seen = await look(held, vendor)
  if ('error' in seen) return missed(held, seen.error, made)
  const { progress } = seen
  if (progress.status === 'FAILURE') return fail(held, 'output_expired', reasonFrom(progress.fail_reason) || EXPIRED)
  if (progress.status !== 'SUCCESS') return missed(held, error, made)
  // Those that are copied already stand first in the vendor's list.
  const fresh = linksOf(progress.outputs).slice(-made.length)
  const [file, ...rest] = fresh
  if (!file || fresh.length < made.length || file.url === dead.url) return fail(held, 'output_expired', EXPIRED)
  const answer = await fetchFile(held, file)
  if ('copied' in answer) return copied(held, answer.copied, { made: fresh, rest })
  if (answer.error.code === 'output_gone') return fail(held, 'output_expired', EXPIRED)
  await missed(held, answer.error, fresh)
}

/** What may pass is tried again until the deadline; the links stay as they are known. */
async function missed(held: Held, error: GatewayError, made: ComingOutput[]): Promise<void> {
  const { task, log, clock } = held
  if (error.code === 'output_refused') return fail(held, 'output_expired', reasonFrom(error.message))
  const failures = task.failures + 1
  log.warn('file not copied yet', { task_id: task.task_id, provider: task.provider, code: error.code, failures })
  const due_ms = nextAttempt(task, failures, { now_ms: clock.now(), retry_after: error.detail.retry_after })
  await write(held, 'copy', { made, failures, due_ms })
}

const LOST =
  'What the upstream had made came with its answer, and was lost when the gateway stopped before it was kept. It may be charged for.'
const EXPIRED = 'The upstream no longer had what it had made when the gateway came to fetch it.'
