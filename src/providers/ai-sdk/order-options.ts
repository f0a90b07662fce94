/** The vendor's own options of an order: from `metadata`, the provider's configuration and renamed fields. */
import type { JSONObject } from '@ai-sdk/provider'
import type { ProviderConfig } from '../../config/schema/schema.ts'
import { asRecord, type JsonRecord } from '../../kit/json.ts'

type Order = { metadata?: JsonRecord | undefined }

/** A field of the specification -> the names of the same thing in vendors' options, without case and underscores. */
export type CoveredNames<Fields> = { [field in keyof Fields]?: string[] }

const normalized = (name: string) => name.replaceAll('_', '').toLowerCase()

/** Without the fields that the operator drops or renames, and the renamed ones under their new names. */
export function renameFields<Fields extends Order>(
  original: Fields,
  fields: ProviderConfig['fields'],
  convert: (field: string, value: unknown) => unknown = (_, value) => value,
): { order: Fields; renamed: JSONObject } {
  const order: JsonRecord = { ...original }
  for (const field of fields?.drop ?? []) delete order[field]
  const renamed: JsonRecord = {}
  for (const [field, name] of Object.entries(fields?.rename ?? {})) {
    if (order[field] === undefined) continue
    renamed[name] = convert(field, order[field])
    delete order[field]
  }
  return { order: order as Fields, renamed: jsonOf(renamed) }
}

type OptionParts<Fields> = {
  /** The order as the client sent it. */
  original: Fields
  vendor: { kind: string; namespace: string }
  defaults: JsonRecord | undefined
  /** Names by which limits and prices, which apply to the field, could be avoided once the field is set. */
  covered: CoveredNames<Fields>
  /** Names that a client may never set. */
  never: readonly string[]
}

/** The client's options, under the name of the kind or of the package, on top of the operator's defaults. */
export function ownOptions<Fields extends Order>(order: Fields, parts: OptionParts<Fields>): JSONObject {
  const { original, vendor, defaults, covered, never } = parts
  const found = order.metadata?.[vendor.kind] ?? order.metadata?.[vendor.namespace]
  const set = Object.entries<string[] | undefined>(covered).flatMap(([field, names = []]) =>
    original[field as keyof Fields] === undefined ? [] : names,
  )
  return jsonOf(withoutNames({ ...defaults, ...withoutNames(asRecord(found), never) }, set))
}

/** Names are compared without case and underscores. */
export const withoutNames = (options: JsonRecord, names: readonly string[]): JsonRecord =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(normalized(name))))

/** Only what JSON can express is sent, so only that is kept. */
export const jsonOf = (values: JsonRecord): JSONObject => JSON.parse(JSON.stringify(values))
