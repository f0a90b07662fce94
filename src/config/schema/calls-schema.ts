/** Schema of the settings of all calls. */
import type Type from 'typebox'
import { number, section } from '../../spec/fields.ts'

export const CallsConfig = section({
  finish_after_leave_seconds: number(
    { minimum: 0, maximum: 600 },
    'How long a response is read for its usage after its client left. Default 30.',
  ),
})
export type CallsConfig = Type.Static<typeof CallsConfig>
