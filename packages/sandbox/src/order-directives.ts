/** The directives of an order (a video or a 3D model): how the order and its task should behave, and how they are stored. */
import Type from 'typebox'
import { FAIL_CODES, FailCode } from '../../../src/spec/task.ts'
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

export const Course = Type.Object({
  retry_after: Type.Optional(Type.Integer()),
  limit: Type.Optional(Type.Integer()),
  garbage: Type.Optional(Type.Integer()),
  fail: Type.Optional(FailCode),
  no_output: Type.Optional(Type.Literal('1')),
  hang: Type.Optional(Type.Literal('1')),
  queue_ms: Type.Optional(Type.Integer()),
  render_ms: Type.Optional(Type.Integer()),
  quick: Type.Optional(Type.Literal('1')),
})
export type Course = Type.Static<typeof Course>

/** An order as it is remembered, whatever it is for. */
export type Ordered = {
  id: string
  /** Unix milliseconds, from which `queue_ms` and `render_ms` count. */
  ordered_ms: number
  course: Course
}

/** What the order says of itself, beside the operation. */
export type ReadOrder<Operation> = {
  operation: Operation
  status: number | undefined
  retry_after: number | undefined
  lose: boolean
}

/** Whether there is next to nothing to render: what is to fail is not worth a large picture. */
export const isQuick = ({ course }: Ordered): boolean => Boolean(course.quick || course.fail || course.no_output)
