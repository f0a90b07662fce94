/** Checks that a tool choice names a tool of the request: providers answer the choice of an absent one each in its own way. */
import { foundText } from '../../kit/diagnose.ts'
import { invalidValue } from '../../spec/error.ts'

/** `list`: the field with the tools. A choice by something that is not a name is left to the provider. */
export function assertOffered(name: unknown, names: Set<unknown>, { param, list }: { param: string; list: string }) {
  if (typeof name !== 'string' || names.has(name)) return
  const message = `"${param}" must be the name of an entry of "${list}", not ${foundText(name)}.`
  throw invalidValue(param, message)
}
