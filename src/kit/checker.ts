/** A schema's check, compiled when it is first needed: what is never asked costs a start nothing. */
import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'

export type Checker<T extends TSchema> = { Check(value: unknown): value is Static<T> }

export function checker<const T extends TSchema>(schema: T): Checker<T> {
  let compiled: Validator | undefined
  return {
    Check(value): value is Static<T> {
      compiled ??= Compile(schema) as unknown as Validator
      return compiled.Check(value)
    },
  }
}
