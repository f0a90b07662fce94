/** The section `store` of `gatehouse.yaml`: the database. */
import type Type from 'typebox'
import { oneOf, section } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

export const StoreConfig = section({
  migrate: oneOf(
    ['auto', 'manual'],
    mark.restart,
    'auto: by a start; manual: by `gatehouse migrate apply`, for which a start waits. Needs a restart. Default auto.',
  ),
})
export type StoreConfig = Type.Static<typeof StoreConfig>
