/** Decodes an embeddings request; errors name the field and the rule. */
import Type from 'typebox'
import { checker } from '../../kit/checker.ts'
import { diagnose, foundText } from '../../kit/diagnose.ts'
import { presentMembers, refusalOf } from '../../protocols/shared/request-error.ts'
import { EmbeddingRequest } from '../../spec/embedding-request.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'

/** All fields but the input, whose alternatives a schema error could not explain. */
const Shared = Type.Omit(EmbeddingRequest, ['input'])
const check = checker(Shared)

/** The maximum of the schema. */
const MOST_INPUTS = 100_000

/** `null` is absent, unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
export function parseEmbeddingRequest(body: unknown): EmbeddingRequest {
  const { input, ...given } = presentMembers(body)
  const rest: unknown = given
  if (!check.Check(rest)) throw refusalOf(diagnose(Shared, rest))
  checkInput(input)
  return { ...rest, input }
}

const refuse = (code: ErrorCode, param: string, message: string) => new GatewayError(code, message, { param })

function checkInput(input: unknown): asserts input is EmbeddingRequest['input'] {
  if (input === undefined) throw refuse('missing_required_parameter', 'input', '"input" is required.')
  if (typeof input === 'string') return checkText(input, 'input')
  if (!Array.isArray(input)) {
    const message = `"input" must be a string, an array of strings, or token numbers, not ${foundText(input)}.`
    throw refuse('invalid_type', 'input', message)
  }
  if (input.length === 0) throw refuse('invalid_value', 'input', '"input" must be an array of at least 1 item.')
  const [first] = input
  if (typeof first === 'number') return checkTokens(input, 'input')
  if (input.length > MOST_INPUTS) {
    const message = `"input" must be an array of at most ${MOST_INPUTS} items, not ${input.length}.`
    throw refuse('invalid_value', 'input', message)
  }
  for (const [index, item] of input.entries()) {
    const param = `input[${index}]`
    if (index === 0 && typeof item !== 'string' && !Array.isArray(item)) {
      const message = `"${param}" must be a string, a token number, or an array of those, not ${foundText(item)}.`
      throw refuse('invalid_type', param, message)
    }
    if (typeof item === 'string' && typeof first === 'string') checkText(item, param)
    else if (Array.isArray(item) && Array.isArray(first)) checkTokens(item, param)
    else {
      const rule = Array.isArray(first) ? 'an array of token numbers, as the first is' : 'a string, as the first is'
      throw refuse('invalid_type', param, `"${param}" must be ${rule}, not ${foundText(item)}.`)
    }
  }
}

function checkText(text: string, param: string): void {
  if (text === '') throw refuse('invalid_value', param, `"${param}" must be a string of at least 1 character.`)
}

function checkTokens(tokens: unknown[], param: string): void {
  if (tokens.length === 0) throw refuse('invalid_value', param, `"${param}" must be an array of at least 1 item.`)
  for (const [index, token] of tokens.entries()) {
    if (Number.isSafeInteger(token) && Number(token) >= 0) continue
    const place = `${param}[${index}]`
    const code = typeof token === 'number' ? 'invalid_value' : 'invalid_type'
    throw refuse(code, place, `"${place}" must be a token number, 0 or above, not ${foundText(token)}.`)
  }
}
