/** Detects models in a passthrough body other than the one that the caller may use. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'

/**
 * `models`, `allowed_models`, `modelName`, `model_id`, `context_window_fallbacks`, in the spelling of any vendor or
 * router.
 */
const NAMES_MODEL = /(^|_)models?$|model_?(name|id|list)s?$|(^|_)fallbacks?$/i
/** Fields by which a router also selects models. */
const CHOOSES_MODEL = new Set(['plugins', 'preset'])
/** Members whose value is the client's own data: schemas, arguments and results of functions. */
const OWN_DATA = new Set([
  'args',
  'functionDeclarations',
  'function_declarations',
  'input',
  'input_schema',
  'parameters',
  'parametersJsonSchema',
  'response',
  'responseJsonSchema',
])

/** Whether a tool or its settings name a model, at any depth. */
function namesModel(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(namesModel)
  if (!isRecord(value)) return false
  return Object.entries(value).some(([name, member]) => {
    if (OWN_DATA.has(name)) return false
    // A client's tool may be named "model": its settings are an object.
    return (NAMES_MODEL.test(name) && !isRecord(member) && member != null) || namesModel(member)
  })
}

/** Whether a body names another model, in a top-level field or in its tools. */
export const namesAnotherModel = (body: Readonly<JsonRecord>): boolean =>
  namesModel(body.tools) ||
  Object.entries(body).some(
    ([name, value]) => name !== 'model' && value != null && (NAMES_MODEL.test(name) || CHOOSES_MODEL.has(name)),
  )

/** The members of a block or an item that hold tools which are added during the conversation. */
const HOLDS_TOOLS = ['definition', 'tool', 'tool_changes', 'tools']

/** Whether tools that are added during the conversation name a model. Blocks may be nested. */
export function addsModel(block: unknown): boolean {
  if (Array.isArray(block)) return block.some(addsModel)
  if (!isRecord(block)) return false
  return HOLDS_TOOLS.some((name) => namesModel(block[name])) || addsModel(block.content)
}
