/** The contentgen dialect's errors: the client's own names of fields. */
import { type ClientFields, errorTranslator } from '../../request-error.ts'
import { RENAMED } from './fields.ts'

/** The house's field -> the client's, where they differ. */
const CLIENT_FIELDS: ClientFields = {
  ...Object.fromEntries(Object.entries(RENAMED).map(([member, field]) => [field, `generationConfig.${member}`])),
  max_completion_tokens: 'generationConfig.maxOutputTokens',
  messages: 'contents',
  stop: 'generationConfig.stopSequences',
  response_format: 'generationConfig.responseMimeType',
  modalities: 'generationConfig.responseModalities',
  reasoning_budget: 'generationConfig.thinkingConfig.thinkingBudget',
  reasoning_effort: 'generationConfig.thinkingConfig.thinkingLevel',
  reasoning_summary: 'generationConfig.thinkingConfig.includeThoughts',
  thinking_enabled: 'generationConfig.thinkingConfig',
  service_tier: 'serviceTier',
  tool_choice: 'toolConfig.functionCallingConfig',
  web_search: 'tools',
  web_search_options: 'tools',
}

/** Kinds of parts, as a message quotes them. */
const CLIENT_PARTS = [
  ['"image_url"', 'an image'],
  ['"input_audio"', 'a sound'],
  ['"file"', 'a file'],
] as const

/** A member of what goes to this style's vendors as it is. */
const OWN_OPTION = /^provider_options\.contentgen-compat\.(.+)$/

/** The same error with the place that the client knows. */
export const errorForClient = errorTranslator({
  fields: CLIENT_FIELDS,
  parts: CLIENT_PARTS,
  // Within a part the two do not look alike, so its own place is as near as one can come.
  inMessage: ({ message, part }, places) => (part && places.get(part)) ?? (message && places.get(message)),
  elsewhere: (param) => OWN_OPTION.exec(param)?.[1],
})
