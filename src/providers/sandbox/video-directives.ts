/** The words of an `@sandbox` line in the prompt of a video: how the order, and the task it becomes, should go. */
import { FAIL_CODES, type FailCode } from '../../spec/task.ts'
import {
  MAX_MILLISECONDS,
  MAX_RETRY_SECONDS,
  type Rule,
  readDirectives,
  refuseDirectives,
  takeDirectiveLines,
} from './directives.ts'

const MAX_QUESTIONS = 10_000
const YES = { values: ['1'] } as const

export const VIDEO_DIRECTIVES = {
  status: { minimum: 400, maximum: 599 },
  retry_after: { minimum: 0, maximum: MAX_RETRY_SECONDS },
  lose: YES,
  limit: { minimum: 0, maximum: MAX_QUESTIONS },
  garbage: { minimum: 0, maximum: MAX_QUESTIONS },
  fail: { values: Object.keys(FAIL_CODES) },
  no_output: YES,
  hang: YES,
  queue_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  render_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  quick: YES,
} as const satisfies Record<string, Rule>

type VideoDirectives = {
  status?: number
  retry_after?: number
  lose?: '1'
  limit?: number
  garbage?: number
  fail?: FailCode
  no_output?: '1'
  hang?: '1'
  queue_ms?: number
  render_ms?: number
  quick?: '1'
}

const KNOWN = { rules: VIDEO_DIRECTIVES, param: 'prompt' }

/** The prompt without its directive lines, and what those ask for. Throws `upstream_invalid_request`. */
export function readVideoPrompt(prompt: string): { text: string; directives: VideoDirectives } {
  const { rest, lines } = takeDirectiveLines(prompt)
  const directives: VideoDirectives = readDirectives(lines, KNOWN)
  if (directives.retry_after !== undefined && directives.status === undefined && directives.limit === undefined) {
    refuseDirectives('retry_after needs a status or a limit beside it.', KNOWN)
  }
  return { text: rest, directives }
}
