/** Applies the operator's lists of dropped and renamed fields to a request body. */
import { isRecord, type JsonRecord } from '../kit/json.ts'
import type { FieldRules } from './upstream.ts'

/** Drops and renames fields, except those that the gateway sets. `generationConfig.seed` names a nested member. */
export function adapt(
  body: JsonRecord,
  { drop, rename }: Pick<FieldRules, 'drop' | 'rename'>,
  ours: ReadonlySet<string>,
): JsonRecord {
  const adapted = { ...body }
  const place = (path: string): [JsonRecord, string] => {
    const [name = '', member] = path.split('.', 2)
    const inner = adapted[name]
    if (member === undefined || !isRecord(inner)) return [adapted, path]
    const copy = { ...inner }
    adapted[name] = copy
    return [copy, member]
  }
  for (const path of drop) {
    const [holder, name] = place(path)
    if (!ours.has(name)) delete holder[name]
  }
  for (const [path, name] of Object.entries(rename)) {
    const [holder, old] = place(path)
    if (ours.has(old) || ours.has(name) || holder[old] === undefined) continue
    holder[name] = holder[old]
    delete holder[old]
  }
  return adapted
}
