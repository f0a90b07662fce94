/** Checks the lines of a file of purpose `batch` while it arrives, so that a batch of a wrong file is refused without reading it. */
import type { Catalogue } from '../../models/catalogue.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchProblem } from '../../store/batches/batch-store.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import { createLineSplitter, type RawLine } from './lines.ts'
import { createLineCheck, familyOf, MOST, MOST_LINE_BYTES, MOST_PROBLEMS, NO_LINES, tooMany } from './validate.ts'

type UploadCheck = {
  push(piece: Uint8Array): void
  /** What is stored of the problems; null: there are none. */
  end(): string | null
}

/** As stored with the file. They are those of a batch with this endpoint, or with any, while all these models are refused. */
type Found = { total: number; problems: BatchProblem[]; endpoint?: string | undefined; refused: (string | null)[] }

const MOST_MESSAGE_CHARACTERS = 500

type Parts = { caller: Caller; catalogue: Pick<Catalogue, 'require'> }

export function createUploadCheck({ caller, catalogue }: Parts): UploadCheck {
  const splitter = createLineSplitter({ max_line_bytes: MOST_LINE_BYTES })
  const lines = createLineCheck({ api: 'openai', caller, catalogue })
  const problems: BatchProblem[] = []
  let total = 0

  function check(raw: RawLine): void {
    if (++total > MOST.openai.lines) return
    const checked = lines.check(raw)
    if (typeof checked === 'string' || problems.length === MOST_PROBLEMS) return
    problems.push({ ...checked, message: checked.message.slice(0, MOST_MESSAGE_CHARACTERS), line: raw.line })
  }

  return {
    push: (piece) => splitter.push(piece).forEach(check),
    end() {
      splitter.end().forEach(check)
      const whole = total === 0 ? NO_LINES : total > MOST.openai.lines ? tooMany('openai') : undefined
      const found: Found = whole
        ? { total: 0, problems: [whole], refused: [] }
        : { total, problems, endpoint: lines.endpoint(), refused: lines.refused() }
      return found.problems.length > 0 ? JSON.stringify(found) : null
    },
  }
}

/** What is known to be wrong with a batch of this file; undefined: nothing, so that it is read. */
export function knownProblems(
  { problems }: Pick<FileRow, 'problems'>,
  { endpoint, caller, catalogue }: Parts & { endpoint: string },
): Pick<Found, 'total' | 'problems'> | undefined {
  if (problems === null) return undefined
  const found: Found = JSON.parse(problems)
  if (found.endpoint !== undefined && found.endpoint !== endpoint) return undefined
  const isServed = (model: string | null) => {
    try {
      return Boolean(catalogue.require(model ?? undefined, familyOf(endpoint), caller))
    } catch {
      return false
    }
  }
  return found.refused.some(isServed) ? undefined : found
}
