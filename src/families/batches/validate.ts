/** The first step of a batch: reads its input, checks each line, and notes where each lies. */
import { GatewayError } from '../../spec/error.ts'
import type { BatchProblem, NewLine } from '../../store/batches/batch-store.ts'
import { createLineCheck } from './check-line.ts'
import { MOST, MOST_LINE_BYTES } from './endpoints.ts'
import { linesOf } from './jsonl.ts'
import { type ClaimedBatch, endingOf, inputStream, secondsOf } from './parts.ts'

/** As OpenAI documents `errors`: the first ones. */
const MOST_PROBLEMS = 100
const LINES_PER_WRITE = 1_000

type Read = { total: number; problems: BatchProblem[]; model: string | undefined; hasNative?: boolean }

/** `lost`: the claim is. */
export async function validate(claimed: ClaimedBatch): Promise<'ready' | 'failed' | 'lost'> {
  const { batch, store, clock, log, crashHook } = claimed
  const read = await readLines(claimed)
  if (!read) return 'lost'
  const now = secondsOf(clock.now())
  if (read.problems.length > 0) {
    const progress = { ...batch.progress, problems: read.problems, ended_at: now }
    log.info('batch failed', { batch_id: batch.batch_id, token_id: batch.token_id, lines: read.total })
    const change = { status: 'failed', progress, total: read.total, due_ms: clock.now(), release: true } as const
    return (await store.save(batch, { ...change, ...endingOf(claimed) })) ? 'failed' : 'lost'
  }
  const { model, hasNative } = read
  const found = { ...(model !== undefined && { model }), ...(!hasNative && { is_ordered: true as const }) }
  const progress = { ...batch.progress, in_progress_at: now, ...found }
  const change = { progress, total: read.total }
  // It was cancelled meanwhile where this is refused.
  const isSaved = await store.save(batch, { status: 'in_progress', ...change })
  if (!isSaved && !(await store.save(batch, change))) return 'lost'
  batch.progress = progress
  batch.status = isSaved ? 'in_progress' : 'cancelling'
  crashHook('batch: validated')
  return 'ready'
}

/** Undefined: the claim is lost. */
async function readLines(claimed: ClaimedBatch): Promise<Read | undefined> {
  const { batch, store, signal, crashHook } = claimed
  const { api, endpoint } = batch
  const failed = (code: string, message: string, param: string | null = null): Read => ({
    total: 0,
    problems: [{ code, message, param, line: null }],
    model: undefined,
  })
  const caller = await claimed.callerOf(batch.token_id)
  if (!caller) return failed('invalid_api_key', 'The token of this batch was revoked, or its project disabled.')
  const input = await inputStream(claimed).catch((thrown) => {
    if (thrown instanceof GatewayError && thrown.code === 'file_not_found') return thrown
    throw thrown
  })
  if (input instanceof GatewayError) return failed(input.code, input.message, 'input_file_id')
  // Requests of the Messages API were checked when they arrived: a model that is gone since is the error of its line.
  const { catalogue } = claimed
  const lines = createLineCheck({ api, endpoint, caller, catalogue, checks_models: api === 'openai' })
  const problems: BatchProblem[] = []
  let found: NewLine[] = []
  let total = 0
  for await (const piece of linesOf(input, { max_line_bytes: MOST_LINE_BYTES })) {
    signal.throwIfAborted()
    for (const raw of piece) {
      if (++total > MOST[api].lines)
        return failed('too_many_tasks', `A batch may have at most ${MOST[api].lines} lines.`)
      const checked = lines.check(raw)
      if (typeof checked !== 'string') {
        if (problems.length < MOST_PROBLEMS) problems.push({ ...checked, line: raw.line })
      } else if (problems.length === 0) {
        found.push({ line: raw.line, offset: raw.offset, bytes: raw.length, custom_id: checked })
      }
    }
    if (found.length < LINES_PER_WRITE) continue
    if (!(await store.addLines(batch, found))) return undefined
    crashHook('batch: lines added')
    found = []
  }
  if (total === 0) return failed('empty_file', 'The input has no lines.')
  if (problems.length === 0 && found.length > 0) {
    if (!(await store.addLines(batch, found))) return undefined
    crashHook('batch: lines added')
  }
  return { total, problems, model: lines.model(), hasNative: lines.hasNative() }
}
