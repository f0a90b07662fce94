/** The settings of one Responses provider: address, headers with the key, and overrides of its models' rules. */
import type { ModelRule } from '../../protocols/responses/upstream/model-rules.ts'
import type { ResponsesOptions } from '../../protocols/responses/upstream/request.ts'
import { NOT_CHAT, type ProviderSettings, readOptions, type SettingsParts, settingsOf } from '../settings.ts'

export type ResponsesSettings = Omit<ProviderSettings, 'quirks'> &
  ResponsesOptions & {
    /** Whether responses to clients of the same protocol pass through. */
    passthrough: boolean
  }

const OPTIONS = ['reasoning', 'sampling', 'audio'] as const
const REASONING: Record<string, Partial<ModelRule>> = {
  none: { reasons: false, encrypts: false },
  plain: { reasons: true, encrypts: false },
  encrypted: { reasons: true, encrypts: true },
}
/** Models in the list that are not chat models. */
const OTHER_MODELS = ['*realtime*', '*audio*', '*image*', '*instruct*']

/** Throws an Error that names the provider and the accepted values. */
export function responsesSettings(parts: SettingsParts): ResponsesSettings {
  const { config } = parts
  const { quirks, chat_models, ...settings } = settingsOf(parts)
  const { allow = [], drop = [], rename = {} } = config.fields ?? {}
  const { developer_role = true, tools = true, custom_tools = true, json_schema = true } = config.quirks ?? {}
  return {
    ...settings,
    // A preset's fields and quirks apply to chat completions only.
    fields: { allow, drop, rename },
    chat_models: { include: chat_models.include, exclude: [...NOT_CHAT, ...OTHER_MODELS] },
    developer_role,
    tools,
    custom_tools,
    json_schema,
    passthrough: quirks.passthrough,
    ...optionsOf(parts),
  }
}

function optionsOf(parts: SettingsParts) {
  const { options, wrong } = readOptions(parts, 'responses-compat', OPTIONS)
  const { reasoning, sampling, audio = false } = options
  const rule: Partial<ModelRule> = {}
  if (reasoning !== undefined) {
    const known =
      typeof reasoning === 'string' && Object.hasOwn(REASONING, reasoning) ? REASONING[reasoning] : undefined
    if (!known) throw wrong('reasoning', `one of ${Object.keys(REASONING).join(', ')}`)
    Object.assign(rule, known)
  }
  if (sampling !== undefined) {
    if (typeof sampling !== 'boolean') throw wrong('sampling', 'true or false')
    rule.sampling = sampling ? 'always' : 'never'
  }
  if (typeof audio !== 'boolean') throw wrong('audio', 'true or false')
  return { rule, audio }
}
