/** Errors of the contentgen API, with the client's field names. */
import { type ClientFields, errorTranslator, places } from '../../shared/request-error.ts'
import { RENAMED } from './fields.ts'

/** Canonical field -> the client's field, where they differ. */
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

/** Kinds of parts, as error messages quote them. */
const CLIENT_PARTS = [
  ['"image_url"', 'an image'],
  ['"input_audio"', 'a sound'],
  ['"file"', 'a file'],
] as const

/** An option that is forwarded unchanged to providers of this API. */
const OWN_OPTION = /^provider_options\.contentgen-compat\.(.+)$/

export const errorForClient = errorTranslator({
  fields: CLIENT_FIELDS,
  parts: CLIENT_PARTS,
  // Members of a part differ between the two APIs, so the place of the whole part is the most precise one.
  inMessage: ({ message, part }) => (part && places.get(part)) ?? (message && places.get(message)),
  elsewhere: (param) => OWN_OPTION.exec(param)?.[1],
})
