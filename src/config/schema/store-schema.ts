/** The section `store` of `gatehouse.yaml`: the database. */
import type Type from 'typebox'
import { oneOf, section } from '../../spec/fields.ts'

export const StoreConfig = section({
  migrate: oneOf(
    ['auto', 'manual'],
    'auto: a start migrates the database; manual: it waits, not ready, until `gatehouse migrate apply` has. Needs a restart. Default auto.',
  ),
})
export type StoreConfig = Type.Static<typeof StoreConfig>
