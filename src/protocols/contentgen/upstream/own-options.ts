/** What a caller may say in the vendor's own words, under `provider_options`: rows of data. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { ChatRequest } from '../../canonical.ts'
import { refused } from './tools.ts'

const KIND = 'contentgen-compat'

/** Members of the body, and those within them. What the house has words and limits for is not among them. */
const OPTIONS: Record<string, readonly string[] | 'whole'> = {
  safetySettings: 'whole',
  cachedContent: 'whole',
  labels: 'whole',
  generationConfig: ['mediaResolution', 'imageConfig', 'speechConfig', 'audioTimestamp', 'enableEnhancedCivicAnswers'],
  toolConfig: ['retrievalConfig'],
  tools: ['urlContext', 'googleMaps', 'codeExecution', 'fileSearch'],
}

/** Throws `unsupported_parameter` for what is not among them. */
export function ownOptionsOf({ provider_options }: ChatRequest): JsonRecord {
  const own = provider_options?.[KIND] ?? {}
  const at = `provider_options.${KIND}`
  for (const [name, value] of Object.entries(own)) {
    const members = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined
    if (members === undefined) throw refused(`${at}.${name}`, `is not an option; there are ${named(OPTIONS)}`)
    if (members === 'whole') continue
    const groups = name === 'tools' && Array.isArray(value) ? value : [value]
    for (const group of groups) {
      if (!isRecord(group)) throw refused(`${at}.${name}`, `must hold objects with members of ${members.join(', ')}`)
      const unknown = Object.keys(group).find((member) => !members.includes(member))
      if (unknown !== undefined)
        throw refused(`${at}.${name}.${unknown}`, `is not an option; there are ${members.join(', ')}`)
    }
  }
  return own
}

const named = (rows: object) => Object.keys(rows).join(', ')

/** One body in which the first word on a member counts; lists of tools are joined. */
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
