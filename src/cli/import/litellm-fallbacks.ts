/** Reads fallbacks and aliases of the models of LiteLLM. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { asRecord, isRecord } from '../../kit/json.ts'
import { type Draft, firstOf, type Members } from './imported.ts'
import { modelId } from './model-targets.ts'

const REASONS = {
  fallbacks: 'unavailable',
  context_window_fallbacks: 'context_length',
  content_policy_fallbacks: 'content_policy',
} as const

export function readFallbacks(draft: Draft, members: Members): undefined {
  for (const [name, reason] of Object.entries(REASONS)) {
    const list = members.take(name)
    if (list === undefined) continue
    if (!Array.isArray(list)) draft.dropped(members.at(name), 'it must be a list')
    for (const [index, entry] of (Array.isArray(list) ? list : []).entries()) {
      for (const [id, others] of Object.entries(asRecord(entry))) {
        addFallback(draft, { id, reason, others, path: `${members.at(name)}[${index}].${id}` })
      }
    }
  }
  const others = members.list('default_fallbacks')
  for (const other of others)
    if (!draft.models.has(other)) draft.dropped(members.at('default_fallbacks'), `there is no model ${other}`)
  if (others.length === 0) return
  for (const id of draft.models.keys()) {
    const rest = others.filter((other) => other !== id)
    const path = members.at('default_fallbacks')
    addFallback(draft, { id, reason: 'unavailable', others: rest, path, isDefault: true })
  }
}

type Fallback = { id: string; reason: string; others: unknown; path: string; isDefault?: boolean }

function addFallback(draft: Draft, { id, reason, others, path, isDefault = false }: Fallback): undefined {
  const tree = draft.models.get(id)
  if (!tree) return draft.dropped(path, 'there is no such model')
  const list = Array.isArray(others) ? others : []
  const known = list.filter((one): one is string => typeof one === 'string' && draft.models.has(one) && one !== id)
  const fallbacks = (tree.fallbacks ?? {}) as Tree
  if (isDefault && fallbacks[reason] !== undefined) return
  if (known.length === 0) {
    if (!isDefault) draft.dropped(path, 'none of these models is there')
    return
  }
  tree.fallbacks = { ...fallbacks, [reason]: firstOf(draft, known, 20, path) }
  const why = known.length === list.length ? undefined : 'models that are not there are left out'
  draft.mapped(path, `models.${id}.fallbacks.${reason}`, why)
}

export function readGroupAliases(draft: Draft, router: Members): void {
  for (const [name, given] of Object.entries(router.record('model_group_alias') ?? {})) {
    const path = `${router.at('model_group_alias')}.${name}`
    const model = isRecord(given) ? given.model : given
    const id = modelId(draft, name, path)
    if (id === undefined) continue
    if (typeof model !== 'string' || !draft.models.has(model)) draft.dropped(path, 'there is no such model')
    else if (draft.models.has(id)) draft.dropped(path, 'a model has this name')
    else {
      draft.models.set(id, { alias_of: model })
      draft.mapped(path, `models.${id}.alias_of`)
    }
  }
}
