/** The steps that copy a provider's files into the gateway's own storage: one file after the other, in parts. */
import type { Copied, CopySource } from '../../../outputs/outputs.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ComingOutput, RemoteFile } from '../../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import { nextCopyAttemptAt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, saveChange, taskProvider, withSignal } from './claimed-task.ts'
import { endCopying, keyOf, NO_OUTPUT, passthroughOutput, storageError, storeOutput, succeed } from './finish.ts'
import { isEnd, type ProgressEnd, pollProvider, remoteLinks } from './poll.ts'
import { resolveDoubt } from './send.ts'

/** A file without a link: the key says where its bytes are stored. */
type Bytes = Exclude<ComingOutput, RemoteFile>
type Files = { made: ComingOutput[]; rest: ComingOutput[] }

export async function copy(claimed: ClaimedTask, made: ComingOutput[]): Promise<void> {
  const { task } = claimed
  const [file, ...rest] = made
  if (!file) return task.outputs.length > 0 ? succeed(claimed, task.outputs) : fail(claimed, 'no_output', NO_OUTPUT)
  if ('key' in file) return copyBytes(claimed, file, { made, rest })
  if (claimed.providerSettings(task.provider)?.outputs === 'passthrough') {
    return saveCopied(claimed, { done: true, output: passthroughOutput(claimed, file) }, { made, rest })
  }
  const result = await fetchFile(claimed, file)
  if ('copied' in result) return saveCopied(claimed, result.copied, { made, rest })
  const { error } = result
  return needsFreshLink(claimed, error)
    ? refreshLinks(claimed, { made, expired: file, error })
    : retryCopy(claimed, error, made)
}

/** Bytes that the provider returned inline: they are stored under their key, or another poll returns them again. */
async function copyBytes(claimed: ClaimedTask, file: Bytes, files: Files): Promise<void> {
  const stored = await claimed.outputs
    .open(file.key)
    .catch((error: unknown) => ({ error: storageError(claimed, error) }))
  if (stored && 'error' in stored) return retryCopy(claimed, stored.error, files.made)
  if (stored) {
    const { content_type, bytes } = stored
    return saveCopied(claimed, { done: true, output: { key: file.key, content_type, bytes } }, files)
  }
  return file.polled ? pollForBytes(claimed, file, files) : recoverLostBytes(claimed)
}

/** The bytes came with the response to the order, and the process that held them ended before it stored them. */
async function recoverLostBytes(claimed: ClaimedTask): Promise<void> {
  const { task, log } = claimed
  log.error('a paid file was lost before it was stored', { task_id: task.task_id, provider: task.provider })
  if (claimed.now() >= task.deadline_at * 1000) return fail(claimed, 'timeout', COPY_DEADLINE_PASSED)
  if (taskProvider(claimed)?.resubmit !== 'safe') return fail(claimed, 'output_expired', BYTES_LOST)
  // The same order with the same key counts once: it returns its result again.
  await resolveDoubt(claimed)
}

async function pollForBytes(claimed: ClaimedTask, { key }: Bytes, files: Files): Promise<void> {
  const polled = await pollAgain(claimed)
  if ('error' in polled) return retryCopy(claimed, polled.error, files.made)
  const { end } = polled
  if (end.status === 'FAILURE') return retryCopy(claimed, revokedError(end), files.made, end)
  // Files without a link come before those with one, and the stored ones before the rest.
  const bytes = end.outputs.filter((one) => !('url' in one))[claimed.task.outputs.length]
  if (!bytes || 'url' in bytes) return retryCopy(claimed, fewerFiles(), files.made)
  try {
    await saveCopied(claimed, { done: true, output: await storeOutput(claimed, bytes, key) }, files)
  } catch (error) {
    if (claimed.stopping()) throw error
    await retryCopy(claimed, asGatewayError(error), files.made)
  }
}

type CopyResult = { copied: Copied } | { error: GatewayError }

async function fetchFile(claimed: ClaimedTask, file: RemoteFile): Promise<CopyResult> {
  const { task, signal, outputs, crashHook } = claimed
  const key = keyOf(task, task.outputs.length, file)
  crashHook('copy: before the first byte')
  try {
    const work = outputs.copy(key, sourceOf(claimed, file), { until_ms: claimed.copy_until_ms, signal })
    return { copied: await withSignal(signal, work) }
  } catch (error) {
    if (claimed.stopping()) throw error
    return { error: storageError(claimed, error) }
  }
}

/** A file at the provider's own origin may need its key, and that origin is allowed even if its address is private. */
function sourceOf(claimed: ClaimedTask, { url, content_type }: RemoteFile): CopySource {
  const { provider, family } = claimed.task
  const settings = claimed.providerSettings(provider)
  const headers = taskProvider(claimed)?.outputHeaders?.(url)
  return {
    url,
    private_addresses: settings?.private_addresses ?? false,
    ...(headers && { headers }),
    ...(content_type !== undefined && { content_type }),
    // Models have many formats, and some are recognised by their label only.
    ...(family !== '3d-generation' && { family_type: kindOf(family).content_type }),
    ...(settings?.base_url !== undefined && { own_origin: new URL(settings.base_url).origin }),
  }
}

async function saveCopied(claimed: ClaimedTask, progress: Copied, { made, rest }: Files): Promise<void> {
  const due_ms = claimed.clock.now()
  if (!progress.done) {
    claimed.crashHook('copy: in the middle')
    if (claimed.now() >= (claimed.task.deadline_at + LAST_COPY_SECONDS) * 1000)
      return endCopying(claimed, { made, error: tooSlow() })
    await saveChange(claimed, 'copy', { made, failures: 0, due_ms })
    return
  }
  claimed.crashHook('copy: after the last byte')
  const outputs = [...claimed.task.outputs, progress.output]
  if (rest.length === 0) return succeed(claimed, outputs)
  await saveChange(claimed, 'copy', { made: rest, outputs, failures: 0, due_ms })
}

/**
 * Links expire sooner than their files, and a 4xx suggests that this one has. Any other error of the upstream may be
 * temporary; when it persists, a fresh link may lead elsewhere. An error of the gateway's own storage is unrelated.
 */
function needsFreshLink({ task }: ClaimedTask, { code, detail }: GatewayError): boolean {
  if (code === 'internal_error' || code === 'output_refused') return false
  if (code === 'output_gone' || task.failures > 0) return true
  const status = detail.upstream_status ?? 0
  return status >= 400 && status < 500 && status !== 408 && status !== 429
}

type ExpiredLink = { made: ComingOutput[]; expired: RemoteFile; error: GatewayError }

/** Polls the provider for fresh links. If they are the same or fewer, or there are none, the attempt has failed. */
async function refreshLinks(claimed: ClaimedTask, { made, expired, error }: ExpiredLink): Promise<void> {
  const polled = await pollAgain(claimed)
  if ('error' in polled) return retryCopy(claimed, error, made)
  const { end } = polled
  if (end.status === 'FAILURE') return retryCopy(claimed, revokedError(end), made, end)
  // The files that are already copied come first in the provider's list.
  const fresh = remoteLinks(end.outputs).slice(-made.length)
  const [file, ...rest] = fresh
  if (!file || fresh.length < made.length || file.url === expired.url) return retryCopy(claimed, error, made)
  const result = await fetchFile(claimed, file)
  if ('copied' in result) return saveCopied(claimed, result.copied, { made: fresh, rest })
  await retryCopy(claimed, result.error, fresh)
}

/** Polls a task that the provider has reported as finished. A status that is not final counts as an error. */
async function pollAgain(claimed: ClaimedTask): Promise<{ end: ProgressEnd } | { error: GatewayError }> {
  const provider = taskProvider(claimed)
  if (!provider) return { error: noProvider() }
  const result = await pollProvider(claimed, provider)
  if ('error' in result) return result
  const { progress } = result
  return isEnd(progress) ? { end: progress } : { error: notDone() }
}

/** How many attempts must fail before the gateway accepts that a provider takes its success back. */
const REVOKED_ATTEMPTS = 5

/** Retries later, until the deadline. Only an error that waiting cannot cure ends the task earlier. */
async function retryCopy(
  claimed: ClaimedTask,
  error: GatewayError,
  made: ComingOutput[],
  revoked?: ProgressEnd,
): Promise<void> {
  const { task, log, clock } = claimed
  const failures = task.failures + 1
  const fields = { task_id: task.task_id, provider: task.provider, code: error.code, failures }
  log.warn('file not copied yet', { ...fields, upstream_status: error.detail.upstream_status })
  const now_ms = clock.now()
  const is_expired = claimed.now() >= task.deadline_at * 1000
  const is_final = error.code === 'output_refused' || (revoked !== undefined && failures >= REVOKED_ATTEMPTS)
  if (is_expired || is_final) return endCopying(claimed, { made, error })
  const due_ms = nextCopyAttemptAt(task, failures, { now_ms, retry_after: error.detail.retry_after })
  await saveChange(claimed, 'copy', { made, failures, due_ms })
}

const revokedError = (end: ProgressEnd): GatewayError =>
  new GatewayError(
    'output_gone',
    (end.status === 'FAILURE' && end.fail_reason) || 'The provider reported a success and later took it back.',
  )

/** How long after the deadline a copy that makes progress continues. */
const LAST_COPY_SECONDS = 600

const tooSlow = () => new GatewayError('upstream_timeout', 'The provider sent it too slowly.')
const fewerFiles = () => new GatewayError('output_gone', 'The provider no longer lists the file.')
const notDone = () => new GatewayError('bad_upstream_response', 'The provider no longer reports the task as finished.')
const noProvider = () =>
  new GatewayError('no_available_channel', 'The provider that generated it is no longer configured.')
const COPY_DEADLINE_PASSED = 'The provider generated it, but its file could not be stored before the deadline.'
const BYTES_LOST =
  'The provider returned the file with its response. The gateway stopped before it stored the file, so it was lost. It may be charged for.'
