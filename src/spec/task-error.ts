/** The error format of the task families. */
import Type from 'typebox'
import { ErrorBody } from './error.ts'

/** An error for clients of the task families: flat, as they expect it, with the members that all other clients read. */
export const TaskErrorBody = Type.Object(
  {
    code: Type.String(),
    message: Type.String(),
    data: Type.Null(),
    fail_code: Type.String({ description: 'What a task fails with for the same reason; empty where none could.' }),
    ...ErrorBody.properties,
  },
  { title: 'TaskError' },
)
export type TaskErrorBody = Type.Static<typeof TaskErrorBody>
