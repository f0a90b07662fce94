/** Edits the text of the configuration for a provider that is new, or that gets one more key; the rest stays as it is. */
import { isDeepStrictEqual } from 'node:util'
import { isMap, isScalar, isSeq, type Pair, parseDocument, stringify, type YAMLSeq } from 'yaml'
import { type Change, editYaml, type Tree } from './edit-yaml.ts'
import { maskText } from './masked-text.ts'

type DraftKey = { name: string; key?: string | undefined; key_file?: string | undefined }
export type ProviderDraft = {
  id: string
  /** Of a provider that is new. */
  settings?: Tree | undefined
  /** One more key of a provider of the file. */
  new_key?: DraftKey | undefined
  /** Models of a new provider, by their names there. */
  models?: readonly { model: string; families?: readonly string[] | undefined }[] | undefined
  /** The variable with the present key, where the file has none. */
  variable?: string | undefined
}

/** Throws an Error that says why the text cannot be edited so. */
export function withDraft(text: string, draft: ProviderDraft): string {
  if (draft.new_key) {
    const out = withKey(text, { ...draft, new_key: draft.new_key })
    if (!isDeepStrictEqual(withoutKeys(out, draft.id), withoutKeys(text, draft.id))) throw new Error(UNUSUAL)
    return out
  }
  const { id, settings = {}, models = [] } = draft
  const present = sectionsOf(text)
  if (Object.hasOwn(present.providers, id)) throw new Error(`the file has a provider ${id} already`)
  const changes: Change[] = [{ path: ['providers', id], tree: settings }]
  for (const { model, families } of models) {
    const name = `${id}/${model}`
    if (Object.hasOwn(present.models, name)) continue
    changes.push({ path: ['models', name], tree: families ? { families: [...families] } : {} })
  }
  return edited(text, changes)
}

function edited(text: string, changes: Change[]): string {
  const { text: out, refused } = editYaml(text, changes)
  const [first] = refused
  if (first) throw new Error(`${first.change.path.join('.')} cannot be edited: ${first.why}`)
  return out
}

/** All but the keys of a provider: an alias or a "<<" would give a new key to another provider too. */
function withoutKeys(text: string, id: string): unknown {
  const document = parseDocument(text, { merge: true, prettyErrors: false })
  if (document.errors.length > 0) throw new Error(UNUSUAL)
  const { providers, ...others } = document.toJS() as { providers: Record<string, Tree> }
  const { [id]: { key, key_file, keys, ...provider } = {}, ...rest } = providers
  return { others, rest, provider }
}

type KeyDraft = ProviderDraft & { new_key: DraftKey }

function withKey(text: string, { id, new_key, variable }: KeyDraft): string {
  const provider = parseDocument(text, { prettyErrors: false }).getIn(['providers', id])
  if (!isMap(provider)) throw new Error(`the file has no provider ${id} of its own: add it there first`)
  const pairOf = (name: string) => provider.items.find(({ key }) => isScalar(key) && key.value === name)
  const keys = pairOf('keys')
  if (keys) return appended(text, keys, new_key)
  const [name, pair] = pairOf('key') ? ['key', pairOf('key')] : ['key_file', pairOf('key_file')]
  const first = new_key.name === 'main' ? 'first' : 'main'
  if (!pair) {
    if (variable === undefined)
      throw new Error(`the provider ${id} has no key that the file names: write its first one there`)
    const both = [{ name: first, key: `\${${variable}}` }, entryOf(new_key)]
    return edited(text, [{ path: ['providers', id], tree: { keys: both } }])
  }
  const [from, to] = [startOf(pair.key), isScalar(pair.value) ? pair.value.range?.[1] : undefined]
  if (from === undefined || to === undefined || !isScalar(pair.value)) throw new Error(UNUSUAL)
  const both = [flow({ name: first, [name as string]: String(pair.value.value) }), flow(entryOf(new_key))]
  return `${text.slice(0, from)}keys: [${both.join(', ')}]${text.slice(to)}`
}

const UNUSUAL = 'its keys are written in a way that cannot be edited'

/** After the last one: in the same line where the list is in brackets, else on a line of its own. */
function appended(text: string, { value: list }: Pair, new_key: DraftKey): string {
  if (!isSeq(list) || list.anchor || list.items.length === 0) throw new Error(UNUSUAL)
  const entry = flow(entryOf(new_key))
  const end = endOf(list.items.at(-1))
  const start = list.range?.[0]
  if (end === undefined || start === undefined) throw new Error(UNUSUAL)
  if (list.flow) return `${text.slice(0, end)}, ${entry}${text.slice(end)}`
  const indent = ' '.repeat(start - (text.lastIndexOf('\n', start - 1) + 1))
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const line = text.indexOf('\n', end)
  if (line === -1) return `${text}${eol}${indent}- ${entry}${eol}`
  return `${text.slice(0, line + 1)}${indent}- ${entry}${eol}${text.slice(line + 1)}`
}

const startOf = (node: unknown): number | undefined => (isScalar(node) ? node.range?.[0] : undefined)

/** The end of what is written of a node, without what follows on its last line. */
function endOf(node: unknown): number | undefined {
  if (isMap(node) && !node.flow) return endOf(node.items.at(-1)?.value)
  if (isScalar(node) || isMap(node) || isSeq(node)) return (node as YAMLSeq).range?.[1]
  return undefined
}

const entryOf = ({ name, key, key_file }: DraftKey): Record<string, string> => ({
  name,
  ...(key !== undefined && { key }),
  ...(key_file !== undefined && { key_file }),
})

const flow = (entry: Record<string, string>): string =>
  `{ ${Object.entries(entry)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(', ')} }`

type Sections = { providers: Record<string, unknown>; models: Record<string, unknown> }

function sectionsOf(text: string): Sections {
  const value = (parseDocument(text, { merge: true, prettyErrors: false }).toJS() ?? {}) as Partial<Sections>
  return { providers: value.providers ?? {}, models: value.models ?? {} }
}

/** What decides from where a provider of the text takes its key. */
export function providerOf(text: string, id: string): { preset?: string; kind?: string } {
  const { preset, kind } = (sectionsOf(text).providers[id] ?? {}) as Record<string, unknown>
  return { ...(typeof preset === 'string' && { preset }), ...(typeof kind === 'string' && { kind }) }
}

/** The provider of the text alone: a short text, from which it can be created. */
export const providerText = (text: string, id: string): string =>
  stringify({ providers: { [id]: sectionsOf(text).providers[id] ?? {} } })

/** The part of the text that a draft changed, to be written by hand: keys are `***`. */
export function shownDraft(text: string, { id, models = [] }: ProviderDraft): string {
  const shown = sectionsOf(maskText(text)?.text ?? '')
  const names = models.map(({ model }) => `${id}/${model}`)
  const added = Object.fromEntries(names.map((name) => [name, shown.models[name] ?? {}]))
  const part = { providers: { [id]: shown.providers[id] }, ...(names.length > 0 && { models: added }) }
  return stringify(part, { lineWidth: 0 }).replaceAll(/(["']?)\*\*\*\d+\1/g, '"***"')
}
