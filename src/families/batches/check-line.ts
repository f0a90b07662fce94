/** Checks the lines of a batch before any is called. What only the route can check is checked when the line is called. */
import { isRecord } from '../../kit/json.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchApi, BatchProblem } from '../../store/batches/batch-store.ts'
import { familyOf, MOST, MOST_LINE_BYTES } from './endpoints.ts'
import type { RawLine } from './jsonl.ts'

type Problem = Omit<BatchProblem, 'line'>
type CheckParts = {
  api: BatchApi
  endpoint: string
  caller: Caller
  catalogue: Pick<Catalogue, 'require'>
  /** False: models were checked before. Default true. */
  checks_models?: boolean
}

type LineCheck = {
  /** The custom_id of the line, or what is wrong with it. */
  check(line: RawLine): string | Problem
  /** Whether a batch of its vendor executes lines of one of the models. */
  hasNative(): boolean
  /** The model of the lines, where all have the same. */
  model(): string | undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

export function createLineCheck({ api, endpoint, caller, catalogue, checks_models = true }: CheckParts): LineCheck {
  const seen = new Set<string>()
  let hasNative = false
  /** What is wrong with each model that was named; undefined: nothing. */
  const models = new Map<string | undefined, Problem | undefined>()
  const body_name = api === 'openai' ? 'body' : 'params'

  function modelProblem(model: string | undefined): Problem | undefined {
    try {
      const chosen = catalogue.require(model, familyOf(endpoint), caller)
      if (chosen.model.has_native_batches) hasNative = true
      return undefined
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      if (!checks_models) return undefined
      return { code: thrown.code, message: thrown.message, param: `${body_name}.model` }
    }
  }

  function bodyProblem(body: Record<string, unknown>): Problem | undefined {
    for (const name of ['stream', 'background'] as const)
      if (body[name] === true)
        return invalid(`"${body_name}.${name}" must not be true in a batch.`, `${body_name}.${name}`)
    const { model = undefined } = body
    if (model === undefined || model === null) {
      // Only moderations have a default model.
      if (endpoint !== '/v1/moderations') return missing(`${body_name}.model`)
    } else if (typeof model !== 'string') {
      return { code: 'invalid_type', message: `"${body_name}.model" must be a string.`, param: `${body_name}.model` }
    }
    const name = typeof model === 'string' ? model : undefined
    if (!models.has(name)) {
      if (models.size >= MOST_MODELS) models.clear()
      models.set(name, modelProblem(name))
    }
    return models.get(name)
  }

  function idProblem(custom_id: unknown): Problem | undefined {
    if (custom_id === undefined || custom_id === null) return missing('custom_id')
    if (typeof custom_id !== 'string' || !MOST[api].custom_id.test(custom_id))
      return invalid(`"custom_id" must be ${MOST[api].rule}.`, 'custom_id')
    if (!seen.has(custom_id)) return undefined
    const message = `The custom_id "${custom_id}" stands in an earlier line too.`
    return { code: 'duplicate_custom_id', message, param: 'custom_id' }
  }

  function targetProblem({ method, url }: Record<string, unknown>): Problem | undefined {
    if (method === undefined) return missing('method')
    if (method !== 'POST') return invalid('"method" must be "POST".', 'method')
    if (url === undefined) return missing('url')
    if (url === endpoint) return undefined
    const message = `"url" must be ${endpoint}, the endpoint of the batch.`
    return { code: 'url_mismatch', message, param: 'url' }
  }

  return {
    check({ bytes, length }) {
      if (length > MOST_LINE_BYTES)
        return { code: 'request_too_large', message: `A line may have at most ${MOST_LINE_BYTES} bytes.`, param: null }
      const value = parse(bytes)
      if (!isRecord(value))
        return { code: 'invalid_json_line', message: 'This line is not a JSON object.', param: null }
      const body = value[body_name]
      const problem =
        idProblem(value.custom_id) ??
        (api === 'openai' ? targetProblem(value) : undefined) ??
        (body === undefined ? missing(body_name) : undefined) ??
        (isRecord(body) ? bodyProblem(body) : invalid(`"${body_name}" must be an object.`, body_name))
      if (typeof value.custom_id === 'string' && seen.size < MOST[api].lines) seen.add(value.custom_id)
      return problem ?? String(value.custom_id)
    },
    hasNative: () => hasNative,
    model() {
      const [first] = models.keys()
      return models.size === 1 ? first : undefined
    },
  }
}

const MOST_MODELS = 1_000

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    return undefined
  }
}

const missing = (param: string): Problem => ({
  code: 'missing_required_parameter',
  message: `"${param}" is required.`,
  param,
})
const invalid = (message: string, param: string): Problem => ({ code: 'invalid_value', message, param })
