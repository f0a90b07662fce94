/**
 * Reads LiteLLM's price map (`model_prices_and_context_window.json`) as rows of the form of models.dev. Its prices are in
 * USD for one token, image, second or query: https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json
 */
type Entry = Record<string, unknown>

/** Its names of vendors that models.dev names otherwise. */
const VENDORS: Record<string, string> = {
  gemini: 'google',
  together_ai: 'togetherai',
  fireworks_ai: 'fireworks-ai',
  moonshot: 'moonshotai',
  novita: 'novita-ai',
  zai: 'zhipuai',
  cohere_chat: 'cohere',
  'text-completion-openai': 'openai',
}

const MILLION = 1_000_000
/** 0.1 * 0.2 and the like: the digits behind these are none of the price list. */
const DIGITS = 12

export const isLiteLlm = (root: Entry): boolean =>
  Object.values(root).some((entry) => isEntry(entry) && typeof entry.litellm_provider === 'string')

const isEntry = (value: unknown): value is Entry => typeof value === 'object' && value !== null && !Array.isArray(value)

/** By the names of models.dev: vendors, and their models. */
export function rowsOfLiteLlm(root: Entry): Map<string, Map<string, unknown>> {
  const vendors = new Map<string, Map<string, unknown>>()
  for (const [key, entry] of Object.entries(root)) {
    if (key === 'sample_spec' || !isEntry(entry) || typeof entry.litellm_provider !== 'string') continue
    const id = VENDORS[entry.litellm_provider] ?? entry.litellm_provider
    const rows = vendors.get(id) ?? new Map<string, unknown>()
    vendors.set(id, rows)
    const prefix = `${entry.litellm_provider}/`
    const name = key.startsWith(prefix) ? key.slice(prefix.length) : key
    if (!rows.has(name)) rows.set(name, rowOf(entry))
  }
  return vendors
}

function rowOf(entry: Entry): Entry {
  const { mode } = entry
  const each = (name: string, times: number) => priceOf(entry[name], times)
  const isImage = mode === 'image_generation' || mode === 'image_edit'
  const isVideo = mode === 'video_generation'
  const cost = {
    ...tokenCosts(entry, ''),
    cache_write_1h: each('cache_creation_input_token_cost_above_1hr', MILLION),
    reasoning: each('output_cost_per_reasoning_token', MILLION),
    input_audio: each('input_cost_per_audio_token', MILLION),
    output_audio: each('output_cost_per_audio_token', MILLION),
    // Models that chat have it beside the price of the same tokens.
    image: isImage ? each('output_cost_per_image', 1) : undefined,
    video_second: isVideo
      ? (each('output_cost_per_video_per_second', 1) ?? each('output_cost_per_second', 1))
      : undefined,
    searches: each('input_cost_per_query', 1_000),
    tiers: tiersOf(entry),
  }
  return { mode, limit: { context: entry.max_input_tokens, output: entry.max_output_tokens }, cost }
}

const tokenCosts = (entry: Entry, suffix: string) => ({
  input: priceOf(entry[`input_cost_per_token${suffix}`], MILLION),
  output: priceOf(entry[`output_cost_per_token${suffix}`], MILLION),
  cache_read: priceOf(entry[`cache_read_input_token_cost${suffix}`], MILLION),
  cache_write: priceOf(entry[`cache_creation_input_token_cost${suffix}`], MILLION),
})

/** `input_cost_per_token_above_200k_tokens` and the like. */
const tiersOf = (entry: Entry): Entry[] =>
  Object.keys(entry).flatMap((name) => {
    const [, suffix = '', thousands] = /^input_cost_per_token(_above_(\d+)k_tokens)$/.exec(name) ?? []
    return thousands === undefined
      ? []
      : [{ above_input_tokens: Number(thousands) * 1_000, ...tokenCosts(entry, suffix) }]
  })

/** Some figures are text. Anything else is left as it is, so that it is reported. */
function priceOf(value: unknown, times: number): unknown {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof number !== 'number' || Number.isNaN(number)) return value ?? undefined
  return Number((number * times).toPrecision(DIGITS))
}
