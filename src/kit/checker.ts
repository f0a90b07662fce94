/** Compiles a schema's check on first use, so that unused schemas cost nothing at start. */
import type { Static, TSchema } from 'typebox'
import type { Validator } from 'typebox/compile'

type Checker<T extends TSchema> = { Check(value: unknown): value is Static<T> }

export function checker<const T extends TSchema>(schema: T): Checker<T> {
  let compiled: Validator | undefined
  return {
    Check(value): value is Static<T> {
      compiled ??= compile(schema)
      return compiled.Check(value)
    },
  }
}

function compile(schema: TSchema): Validator {
  // Loading the compiler takes a tenth of the start time.
  const { Compile } = require('typebox/compile') as typeof import('typebox/compile')
  return Compile(schema) as unknown as Validator
}
