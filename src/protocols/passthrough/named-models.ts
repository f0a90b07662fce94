/** What passes to a vendor as it is may name more of the vendor's models than the one that the caller was allowed. */
import { isRecord, type JsonRecord } from '../../kit/json.ts'

/** `models`, `allowed_models`, `modelName`, `model_id`, `context_window_fallbacks`: in any vendor's or router's spelling. */
const NAMES_MODEL = /(^|_)models?$|model_?(name|id|list)s?$|(^|_)fallbacks?$/i
/** By these a router in front of vendors chooses models too. */
const CHOOSES_MODEL = new Set(['plugins', 'preset'])
/** Members whose value is the client's own: schemas of functions, what a function was called with or said. */
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

/** Whether a tool, or the settings of one, names a model at any depth. */
function namesModel(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(namesModel)
  if (!isRecord(value)) return false
  return Object.entries(value).some(([name, member]) => {
    if (OWN_DATA.has(name)) return false
    // A tool of the client's may be called "model": its settings are an object.
    return (NAMES_MODEL.test(name) && !isRecord(member) && member != null) || namesModel(member)
  })
}

/** Whether a body names a model beside its own: in a field of its own, or in its tools. */
export const namesAnotherModel = (body: Readonly<JsonRecord>): boolean =>
  namesModel(body.tools) ||
  Object.entries(body).some(
    ([name, value]) => name !== 'model' && value != null && (NAMES_MODEL.test(name) || CHOOSES_MODEL.has(name)),
  )

/** The members of a message's block, or of an item, that hold tools which join the conversation on its way. */
const HOLDS_TOOLS = ['definition', 'tool', 'tool_changes', 'tools']

/** Whether tools that join on the way name a model; blocks may hold blocks. */
export function addsModel(block: unknown): boolean {
  if (Array.isArray(block)) return block.some(addsModel)
  if (!isRecord(block)) return false
  return HOLDS_TOOLS.some((name) => namesModel(block[name])) || addsModel(block.content)
}
