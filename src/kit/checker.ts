/** Compiles a schema's check on first use, so that unused schemas cost nothing at start. */
import type { Static, TSchema } from 'typebox'
import type { Validator } from 'typebox/compile'

type Checker<T extends TSchema> = { Check(value: unknown): value is Static<T> }

export function checker<const T extends TSchema>(schema: T): Checker<T> {
  const check: Checker<T> = {
    Check(value): value is Static<T> {
      const compiled = compile(schema)
      check.Check = compiled.Check.bind(compiled) as Checker<T>['Check']
      return compiled.Check(value)
    },
  }
  return check
}

function compile(schema: TSchema): Validator {
  // Loading the compiler takes a tenth of the start time.
  const { Compile } = require('typebox/compile') as typeof import('typebox/compile')
  return Compile(schema) as unknown as Validator
}
