/** What an order to the sandbox says of its own way: how it should go after it was taken. */
import Type from 'typebox'
import { FailCode } from '../../spec/task.ts'

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
