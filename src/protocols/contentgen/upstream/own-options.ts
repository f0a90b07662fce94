/** The vendor-specific options that a caller may set in `provider_options`. */
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { refusedField } from '../../shared/request-error.ts'

const KIND = 'contentgen-compat'

/**
 * Allowed members of the body, and of their objects. Options that have a canonical field with limits are not
 * included.
 */
const OPTIONS: Record<string, readonly string[] | 'whole'> = {
  safetySettings: 'whole',
  cachedContent: 'whole',
  labels: 'whole',
  generationConfig: ['mediaResolution', 'imageConfig', 'speechConfig', 'audioTimestamp', 'enableEnhancedCivicAnswers'],
  toolConfig: ['retrievalConfig'],
  tools: ['urlContext', 'googleMaps', 'codeExecution', 'fileSearch'],
}

/** Throws `unsupported_parameter` for any other option. */
export function ownOptionsOf({ provider_options }: ChatRequest): JsonRecord {
  const own = provider_options?.[KIND] ?? {}
  const at = `provider_options.${KIND}`
  for (const [name, value] of Object.entries(own)) {
    const members = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined
    if (members === undefined)
      throw refusedField(`${at}.${name}`, `is not an option; the options are ${named(OPTIONS)}`)
    if (members === 'whole') continue
    const groups = name === 'tools' && Array.isArray(value) ? value : [value]
    for (const group of groups) {
      if (!isRecord(group))
        throw refusedField(`${at}.${name}`, `must hold objects with members of ${members.join(', ')}`)
      const unknown = Object.keys(group).find((member) => !members.includes(member))
      if (unknown !== undefined)
        throw refusedField(`${at}.${name}.${unknown}`, `is not an option; the options are ${members.join(', ')}`)
    }
  }
  return own
}

const named = (rows: object) => Object.keys(rows).join(', ')

/** Merges two bodies. The first value of a member wins; lists of tools are joined. */
export function mergeOptions(body: JsonRecord, own: JsonRecord): JsonRecord {
  const whole = { ...body }
  for (const [name, value] of Object.entries(own)) {
    const before = whole[name]
    if (name === 'tools') whole[name] = [...(Array.isArray(before) ? before : []), ...[value].flat()]
    else if (isRecord(before) && isRecord(value)) whole[name] = { ...value, ...before }
    else whole[name] ??= value
  }
  return whole
}
