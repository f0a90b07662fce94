/** Schema of the settings of all calls. */
import Type from 'typebox'
import { number } from '../../spec/fields.ts'

export const CallsConfig = Type.Object(
  {
    finish_after_leave_seconds: number(
      { minimum: 0, maximum: 600 },
      'How long a response is read for its usage after its client left. Default 30.',
    ),
  },
  { additionalProperties: false },
)
export type CallsConfig = Type.Static<typeof CallsConfig>
