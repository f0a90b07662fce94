/** The settings of one Responses provider: address, headers with the key, and overrides of its models' rules. */
import type { ModelRule } from '../../protocols/responses/upstream/model-rules.ts'
import { NOT_CHAT, readOptions, type SettingsParts, settingsOf } from '../settings.ts'

export type ResponsesSettings = ReturnType<typeof responsesSettings>

const OPTIONS = ['reasoning', 'sampling', 'audio'] as const
const REASONING: Record<string, Partial<ModelRule>> = {
  none: { reasons: false, encrypts: false },
  plain: { reasons: true, encrypts: false },
  encrypted: { reasons: true, encrypts: true },
}
/** Models in the list that are not chat models. */
const OTHER_MODELS = ['*realtime*', '*audio*', '*image*', '*instruct*']

/** Throws an Error that names the provider and the accepted values. */
export function responsesSettings(parts: SettingsParts) {
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
    /** Whether responses to clients of the same protocol pass through. */
    passthrough: quirks.passthrough,
    ...optionsOf(parts),
  }
}

function optionsOf(parts: SettingsParts) {
  const { oneOf, flag } = readOptions(parts, 'responses-compat', OPTIONS)
  const rule: Partial<ModelRule> = { ...REASONING[oneOf('reasoning', Object.keys(REASONING)) ?? ''] }
  const sampling = flag('sampling')
  if (sampling !== undefined) rule.sampling = sampling ? 'always' : 'never'
  return { rule, audio: flag('audio') ?? false }
}
