/** The directives of an order (a video or a 3D model): how the order and its task should behave, and how they are stored. */
import Type from 'typebox'
import { FAIL_CODES, FailCode } from '../../../src/spec/task.ts'
import { DIRECTIVES, extractDirectiveLines, MAX_MILLISECONDS, type Rule, readDirectives } from './directives.ts'

const MAX_POLLS = 10_000
const YES = { values: ['1'] } as const

export const ORDER_DIRECTIVES = {
  status: DIRECTIVES.status,
  retry_after: DIRECTIVES.retry_after,
  lose: YES,
  limit: { minimum: 0, maximum: MAX_POLLS },
  garbage: { minimum: 0, maximum: MAX_POLLS },
  fail: { values: Object.keys(FAIL_CODES) as FailCode[] },
  no_output: YES,
  hang: YES,
  queue_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  render_ms: { minimum: 0, maximum: MAX_MILLISECONDS },
  quick: YES,
} as const satisfies Record<string, Rule>

/** The prompt without its directive lines, and the directives. Throws `upstream_invalid_request`. */
export function parseOrderPrompt(prompt: string) {
  const { rest: text, lines } = extractDirectiveLines(prompt)
  return { text, directives: readDirectives(lines, { rules: ORDER_DIRECTIVES, param: 'prompt' }) }
}

/** What is stored with an accepted order. */
const OrderBehavior = Type.Object({
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

/** What the stored operations of all orders have in common: all that another process needs to render the same again. */
export const STORED_ORDER = {
  id: Type.String(),
  /** The part of the prompt that is shown. */
  text: Type.String(),
  seed: Type.String(),
  /** Unix milliseconds; `queue_ms` and `render_ms` count from here. */
  ordered_ms: Type.Integer(),
  /** Stored with the task: this name must not change. */
  course: OrderBehavior,
  /** Whose order it is; absent for older ones. */
  owner: Type.Optional(Type.String()),
}
export type StoredOrder = Type.Static<Type.TObject<typeof STORED_ORDER>>

/** Whether to render as little as possible: an order that is going to fail needs no large picture. */
export const isQuick = ({ course }: StoredOrder): boolean => Boolean(course.quick || course.fail || course.no_output)
