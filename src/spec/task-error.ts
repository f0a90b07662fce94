/** An error as the families of tasks tell it. */
import Type from 'typebox'
import { ErrorBody } from './error.ts'

/** What this family's clients are told of an error: flat, as they know it, with what all other clients read beside it. */
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
