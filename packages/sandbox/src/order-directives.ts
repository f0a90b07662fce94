/** The directives of an order (a video or a 3D model): how the order and its task should behave, and how they are stored. */
import Type from 'typebox'
import { FAIL_CODES, FailCode } from '../../../src/spec/task.ts'
import {
  extractDirectiveLines,
  MAX_MILLISECONDS,
  MAX_RETRY_SECONDS,
  type Rule,
  readDirectives,
  rejectDirectives,
} from './directives.ts'

const MAX_POLLS = 10_000
const YES = { values: ['1'] } as const

export const ORDER_DIRECTIVES = {
  status: { minimum: 400, maximum: 599 },
  retry_after: { minimum: 0, maximum: MAX_RETRY_SECONDS },
  lose: YES,
  limit: { minimum: 0, maximum: MAX_POLLS },
  garbage: { minimum: 0, maximum: MAX_POLLS },
  fail: { values: Object.keys(FAIL_CODES) },
  no_output: YES,
  hang: YES,
  queue_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  render_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  quick: YES,
} as const satisfies Record<string, Rule>

const KNOWN = { rules: ORDER_DIRECTIVES, param: 'prompt' }

type OrderDirectives = OrderBehavior & { status?: number; lose?: '1' }

/** The prompt without its directive lines, and the directives. Throws `upstream_invalid_request`. */
export function parseOrderPrompt(prompt: string): { text: string; directives: OrderDirectives } {
  const { rest, lines } = extractDirectiveLines(prompt)
  const directives: OrderDirectives = readDirectives(lines, KNOWN)
  if (directives.retry_after !== undefined && directives.status === undefined && directives.limit === undefined) {
    rejectDirectives('retry_after needs a status or a limit beside it.', KNOWN)
  }
  return { text: rest, directives }
}

/** What is stored with an accepted order. */
export const OrderBehavior = Type.Object({
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
export type OrderBehavior = Type.Static<typeof OrderBehavior>

/** What the stored operations of all orders have in common. */
export type StoredOrder = {
  id: string
  /** Unix milliseconds; `queue_ms` and `render_ms` count from here. */
  ordered_ms: number
  /** Stored with the task: this name must not change. */
  course: OrderBehavior
  /** Whose order it is; absent for older ones. */
  owner?: string
}

/** An operation, and the directives that apply before it is accepted. */
export type ParsedOrder<Operation> = {
  operation: Operation
  status: number | undefined
  retry_after: number | undefined
  lose: boolean
}

/** Whether to render as little as possible: an order that is going to fail needs no large picture. */
export const isQuick = ({ course }: StoredOrder): boolean => Boolean(course.quick || course.fail || course.no_output)
