/** The operator's last word on a body's fields, whatever the vendor. */
import { isRecord, type JsonRecord } from '../kit/json.ts'
import type { FieldRules } from './upstream.ts'

/** Leaves out and renames, but never what is the house's to say. `generationConfig.seed` means a member of a member. */
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
