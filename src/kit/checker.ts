/** A schema's check, compiled when it is first needed: what is never asked costs a start nothing. */
import { createRequire } from 'node:module'
import type { Static, TSchema } from 'typebox'
import type { Validator } from 'typebox/compile'

/** The compiler itself takes as long to load as a tenth of a start. */
const require = createRequire(import.meta.url)

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
  const { Compile } = require('typebox/compile') as typeof import('typebox/compile')
  return Compile(schema) as unknown as Validator
}
