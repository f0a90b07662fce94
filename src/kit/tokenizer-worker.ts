/** The tokenizer's worker thread: receives texts, returns counts. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { O200K_TOKEN_SPLIT_REGEX } from 'gpt-tokenizer/encodingParams/constants'
import { answerQuestions } from './idle-worker.ts'
import { readPacked } from './resources.ts'
import { inShortRuns } from './short-runs.ts'
import { createTokenTable } from './token-table.ts'

const ranks =
  readPacked('o200k_base.tiktoken') ??
  readFileSync(fileURLToPath(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken')))
const table = createTokenTable(ranks.toString('latin1'), O200K_TOKEN_SPLIT_REGEX)

answerQuestions((texts: string[]) =>
  texts.map((text) => inShortRuns(text).reduce((sum, part) => sum + table.count(part), 0)),
)
