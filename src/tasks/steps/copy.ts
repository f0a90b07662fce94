/** The steps that bring a vendor's files into the gateway's own storage, one file after the other, bit by bit. */
import type { Copied, CopySource } from '../../outputs/outputs.ts'
import type { TaskProgress } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ComingOutput, RemoteFile } from '../../spec/task.ts'
import { nextCopyAttempt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, vendorOf, within, write } from './claimed-task.ts'
import { endCopying, keepOne, keyOf, NOTHING, passedThrough, storageError, succeed } from './finish.ts'
import { linksOf, look } from './poll.ts'
import { doubt } from './send.ts'

/** A file without a link: the key says where its bytes are stored. */
type Bytes = Exclude<ComingOutput, RemoteFile>
type Files = { made: ComingOutput[]; rest: ComingOutput[] }
type End = Extract<TaskProgress, { status: 'SUCCESS' | 'FAILURE' }>

export async function copy(claimed: ClaimedTask, made: ComingOutput[]): Promise<void> {
  const { task } = claimed
  const [file, ...rest] = made
  if (!file) return task.outputs.length > 0 ? succeed(claimed, task.outputs) : fail(claimed, 'no_output', NOTHING)
  if ('key' in file) return copyBytes(claimed, file, { made, rest })
  if (claimed.providerSettings(task.provider)?.outputs === 'passthrough') {
    return copied(claimed, { done: true, output: passedThrough(claimed, file) }, { made, rest })
  }
  const answer = await fetchFile(claimed, file)
  if ('copied' in answer) return copied(claimed, answer.copied, { made, rest })
  const { error } = answer
  return needsFreshLink(claimed, error) ? refresh(claimed, { made, dead: file, error }) : missed(claimed, error, made)
}

/** Bytes that came with the vendor's answer: they are where they were to be put, or another poll brings them. */
async function copyBytes(claimed: ClaimedTask, file: Bytes, files: Files): Promise<void> {
  const stored = await claimed.outputs
    .open(file.key)
    .catch((error: unknown) => ({ error: storageError(claimed, error) }))
  if (stored && 'error' in stored) return missed(claimed, stored.error, files.made)
  if (stored) {
    const { content_type, bytes } = stored
    return copied(claimed, { done: true, output: { key: file.key, content_type, bytes } }, files)
  }
  return file.polled ? pollForBytes(claimed, file, files) : lost(claimed)
}

/** The bytes came with the answer to the order, and were not stored before the process that had them ended. */
async function lost(claimed: ClaimedTask): Promise<void> {
  const { task, log, clock } = claimed
  log.error('a paid file was lost before it was kept', { task_id: task.task_id, provider: task.provider })
  if (clock.now() >= task.deadline_at * 1000) return fail(claimed, 'timeout', LATE)
  if (vendorOf(claimed)?.resubmit !== 'safe') return fail(claimed, 'output_expired', LOST)
  // The same order with the same key is the same order: it is asked for what it has made once more.
  await doubt(claimed)
}

async function pollForBytes(claimed: ClaimedTask, { key }: Bytes, files: Files): Promise<void> {
  const polled = await pollAgain(claimed)
  if ('error' in polled) return missed(claimed, polled.error, files.made)
  const { end } = polled
  if (end.status === 'FAILURE') return missed(claimed, verdictError(end), files.made, end)
  // Files without a link stand before those with one, and those that are stored already before the rest.
  const bytes = end.outputs.filter((one) => !('url' in one))[claimed.task.outputs.length]
  if (!bytes || 'url' in bytes) return missed(claimed, fewerFiles(), files.made)
  try {
    await copied(claimed, { done: true, output: await keepOne(claimed, bytes, key) }, files)
  } catch (error) {
    if (claimed.stopping()) throw error
    await missed(claimed, asGatewayError(error), files.made)
  }
}

type Answer = { copied: Copied } | { error: GatewayError }

async function fetchFile(claimed: ClaimedTask, file: RemoteFile): Promise<Answer> {
  const { task, signal, outputs, at } = claimed
  const key = keyOf(task, task.outputs.length, file)
  at('copy: before the first byte')
  try {
    const work = outputs.copy(key, sourceOf(claimed, file), { until_ms: claimed.copy_until_ms, signal })
    return { copied: await within(signal, work) }
  } catch (error) {
    if (claimed.stopping()) throw error
    return { error: storageError(claimed, error) }
  }
}

/** A file at the provider's own address may need its key, and may lie where the operator said that the provider is. */
function sourceOf(claimed: ClaimedTask, { url, content_type }: RemoteFile): CopySource {
  const settings = claimed.providerSettings(claimed.task.provider)
  const headers = vendorOf(claimed)?.outputHeaders?.(url)
  return {
    url,
    private_addresses: settings?.private_addresses ?? false,
    ...(headers && { headers }),
    ...(content_type !== undefined && { content_type }),
    ...(settings?.base_url !== undefined && { own_origin: new URL(settings.base_url).origin }),
  }
}

async function copied(claimed: ClaimedTask, answer: Copied, { made, rest }: Files): Promise<void> {
  const due_ms = claimed.clock.now()
  if (!answer.done) {
    claimed.at('copy: in the middle')
    if (due_ms >= (claimed.task.deadline_at + LAST_COPY_SECONDS) * 1000)
      return endCopying(claimed, { made, error: tooSlow() })
    await write(claimed, 'copy', { made, failures: 0, due_ms })
    return
  }
  claimed.at('copy: after the last byte')
  const outputs = [...claimed.task.outputs, answer.output]
  if (rest.length === 0) return succeed(claimed, outputs)
  await write(claimed, 'copy', { made: rest, outputs, failures: 0, due_ms })
}

/**
 * Links expire sooner than what they lead to, and a 4xx says that this one may have. Any other error of the upstream may
 * pass; when it does not, a fresh link may lead elsewhere. An error of the gateway's own storage has nothing to do with it.
 */
function needsFreshLink({ task }: ClaimedTask, { code, detail }: GatewayError): boolean {
  if (code === 'internal_error' || code === 'output_refused') return false
  if (code === 'output_gone' || task.failures > 0) return true
  const status = detail.upstream_status ?? 0
  return status >= 400 && status < 500 && status !== 408 && status !== 429
}

type Dead = { made: ComingOutput[]; dead: RemoteFile; error: GatewayError }

/** Asks the vendor for fresh links. Where they are the same or fewer, or there are none, the attempt has failed. */
async function refresh(claimed: ClaimedTask, { made, dead, error }: Dead): Promise<void> {
  const polled = await pollAgain(claimed)
  if ('error' in polled) return missed(claimed, error, made)
  const { end } = polled
  if (end.status === 'FAILURE') return missed(claimed, verdictError(end), made, end)
  // Those that are copied already stand first in the vendor's list.
  const fresh = linksOf(end.outputs).slice(-made.length)
  const [file, ...rest] = fresh
  if (!file || fresh.length < made.length || file.url === dead.url) return missed(claimed, error, made)
  const answer = await fetchFile(claimed, file)
  if ('copied' in answer) return copied(claimed, answer.copied, { made: fresh, rest })
  await missed(claimed, answer.error, fresh)
}

/** What the vendor says of a task that it said was done; an answer that is no end counts as an error. */
async function pollAgain(claimed: ClaimedTask): Promise<{ end: End } | { error: GatewayError }> {
  const vendor = vendorOf(claimed)
  if (!vendor) return { error: noProvider() }
  const seen = await look(claimed, vendor)
  if ('error' in seen) return seen
  const { progress } = seen
  return progress.status === 'SUCCESS' || progress.status === 'FAILURE' ? { end: progress } : { error: notDone() }
}

/** So many attempts have to fail before a vendor is believed that takes its success back. */
const VERDICT_ATTEMPTS = 5

/** Tried again later, until the deadline; only what cannot get better by waiting ends it before. */
async function missed(claimed: ClaimedTask, error: GatewayError, made: ComingOutput[], verdict?: End): Promise<void> {
  const { task, log, clock } = claimed
  const failures = task.failures + 1
  const fields = { task_id: task.task_id, provider: task.provider, code: error.code, failures }
  log.warn('file not copied yet', { ...fields, upstream_status: error.detail.upstream_status })
  const now_ms = clock.now()
  const is_over = now_ms >= task.deadline_at * 1000
  const is_final = error.code === 'output_refused' || (verdict !== undefined && failures >= VERDICT_ATTEMPTS)
  if (is_over || is_final) return endCopying(claimed, { made, error })
  const due_ms = nextCopyAttempt(task, failures, { now_ms, retry_after: error.detail.retry_after })
  await write(claimed, 'copy', { made, failures, due_ms })
}

const verdictError = (end: End): GatewayError =>
  new GatewayError(
    'output_gone',
    (end.status === 'FAILURE' && end.fail_reason) || 'The upstream took back that it had made it.',
  )

/** After the deadline a copy that makes progress goes on for so long. */
const LAST_COPY_SECONDS = 600

const tooSlow = () => new GatewayError('upstream_timeout', 'The upstream sent it too slowly.')
const fewerFiles = () => new GatewayError('output_gone', 'The upstream no longer lists the file.')
const notDone = () => new GatewayError('bad_upstream_response', 'The upstream no longer says that it is done.')
const noProvider = () => new GatewayError('no_available_channel', 'The provider that made it is no longer configured.')
const LATE = 'The upstream made it, but its file could not be stored before the deadline.'
const LOST =
  'What the upstream had made came with its answer, and was lost when the gateway stopped before it was kept. It may be charged for.'
