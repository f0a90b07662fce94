/** Estimates what a batch would use and cost, and finds what is wrong with its lines, without creating it. */
import type { BatchEstimate } from '../../spec/batch.ts'
import type { Caller } from '../../spec/token.ts'
import type { Batch } from '../../store/batches/batch-store.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { estimateLine } from './call-line.ts'
import { linesOf } from './lines.ts'
import type { BatchParts } from './parts.ts'
import { createLineCheck, MOST, MOST_LINE_BYTES, MOST_PROBLEMS, tooMany } from './validate.ts'

/** The first lines are priced each as a call; the others by their length. */
const PRICED_LINES = 1_000
const NANO = 1e9

type Estimating = { batch: Batch; file: FileRow; caller: Caller; currency: string; signal: AbortSignal }

export async function estimateBatch(
  { files, catalogue, call }: Pick<BatchParts, 'files' | 'catalogue' | 'call'>,
  { batch, file, caller, currency, signal }: Estimating,
): Promise<BatchEstimate> {
  const { api, endpoint } = batch
  const check = createLineCheck({ api, endpoint, caller, catalogue })
  const problems: NonNullable<BatchEstimate['errors']>['data'] = []
  const sums = { input_tokens: 0, output_tokens: 0, lowest: 0, highest: 0 }
  let [total, invalid, valid_bytes, priced, priced_bytes] = [0, 0, 0, 0, 0]
  let isKnown = true
  for await (const piece of linesOf(await files.read(file), { max_line_bytes: MOST_LINE_BYTES }))
    for (const raw of piece) {
      signal.throwIfAborted()
      if (++total > MOST[api].lines) continue
      const checked = check.check(raw)
      if (typeof checked !== 'string') {
        invalid++
        if (problems.length < MOST_PROBLEMS) problems.push({ ...checked, line: raw.line })
        continue
      }
      valid_bytes += raw.length
      if (priced === PRICED_LINES) continue
      const line = {
        line: raw.line,
        offset: 0,
        bytes: raw.length,
        custom_id: checked,
        attempts: 0,
        called_again: false,
      }
      const text = new TextDecoder().decode(raw.bytes)
      const found = await estimateLine(call, { batch, line, text, caller, signal })
      priced++
      priced_bytes += raw.length
      // What its route refuses costs nothing.
      if (!found) continue
      sums.input_tokens += found.input_tokens
      sums.output_tokens += found.output_tokens
      if (found.lowest === null || found.highest === null) isKnown = false
      sums.lowest += found.lowest ?? 0
      sums.highest += found.highest ?? 0
    }
  if (total > MOST[api].lines) problems.unshift(tooMany(api))
  const scale = priced_bytes === 0 ? 0 : valid_bytes / priced_bytes
  const amount = (nano: number) => (isKnown ? Math.round(nano * scale) / NANO : null)
  return {
    object: 'batch.estimate',
    endpoint,
    request_counts: { total, invalid },
    errors: problems.length > 0 ? { object: 'list', data: problems } : null,
    usage: {
      input_tokens: Math.round(sums.input_tokens * scale),
      most_output_tokens: Math.round(sums.output_tokens * scale),
    },
    cost: { lowest: amount(sums.lowest), highest: amount(sums.highest), currency },
  }
}
