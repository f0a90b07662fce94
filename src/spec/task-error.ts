/** The error format of the task families. */
import Type from 'typebox'
import { ErrorBody } from './error.ts'
import { titled } from './fields.ts'

/** An error for clients of the task families: flat, as they expect it, with the members that all other clients read. */
export const TaskErrorBody = titled('TaskError', {
  code: Type.String(),
  message: Type.String(),
  data: Type.Null(),
  fail_code: Type.String({
    description: 'The fail code of a task that fails for this reason; empty if no task can.',
  }),
  ...ErrorBody.properties,
})
export type TaskErrorBody = Type.Static<typeof TaskErrorBody>
