/** Keys, addresses and headers of providers in a source: secrets become variables, which the operator sets. */
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { PRESETS } from '../../providers/presets.ts'
import type { Draft, Members } from './imported.ts'

/** `os.environ/NAME` of LiteLLM, `env.NAME` of Bifrost, `${NAME}`. */
const VARIABLE = /^(?:os\.environ\/|env\.)([A-Za-z_]\w*)$|^\$\{([A-Za-z_]\w*)\}$/

/** The name of the variable that it names, if any. */
export const variableIn = (text: string): string | undefined => {
  const [, first, second] = VARIABLE.exec(text) ?? []
  return first ?? second
}

/** A reference to a variable; undefined: the member is absent. `name`: of the variable where the value is written in plain. */
export function secretOf(
  draft: Draft,
  members: Members,
  { member, name }: { member: string; name: string },
): string | undefined {
  const text = members.text(member)
  if (text === undefined) return undefined
  return draft.secret(text, { path: members.at(member), name, variable: variableIn(text) })
}

/** The first of these members; one with a user name, a password or a query is a secret. */
export function addressOf(draft: Draft, members: Members, names: readonly string[]): string | undefined {
  let address: string | undefined
  for (const name of names) {
    const text = members.text(name)
    if (text === undefined || address !== undefined) continue
    const path = members.at(name)
    const variable = variableIn(text)
    const url = URL.parse(text)
    if (variable !== undefined) address = draft.secret('', { path, name: '', variable })
    else if (!url || !/^https?:$/.test(url.protocol)) draft.dropped(path, 'it is no http or https address')
    else if (url.username || url.password || url.search || url.hash) {
      address = draft.secret(text, { path, name: `${url.hostname}_URL` })
    } else address = text
  }
  return address
}

/** Every value of a header may be a secret. */
export function headersOf(
  draft: Draft,
  members: Members,
  { members: names, vendor }: { members: readonly string[]; vendor: string },
): Tree | undefined {
  const headers: Tree = {}
  for (const name of names) {
    for (const [header, value] of Object.entries(members.record(name) ?? {})) {
      const path = `${members.at(name)}.${header}`
      if (typeof value !== 'string' || !/^[\w-]{1,100}$/.test(header)) draft.dropped(path, 'it is no header')
      else
        headers[header.toLowerCase()] = draft.secret(value, {
          path,
          name: `${vendor}_${header}`,
          variable: variableIn(value),
        })
    }
  }
  return Object.keys(headers).length === 0 ? undefined : headers
}

const PLAIN = ['apiVersion', 'region', 'project', 'location']

/** `names`: of the options by their names in the source. `variableOf`: the variable of a secret that is written in plain. */
export function optionsOf(
  draft: Draft,
  members: Members,
  {
    names = {},
    variableOf,
  }: { names: Record<string, string> | undefined; variableOf(member: string, to: string): string },
): Tree | undefined {
  const options: Tree = {}
  for (const [member, to] of Object.entries(names)) {
    const text = PLAIN.includes(to) ? members.text(member) : undefined
    const isPlain = text !== undefined && variableIn(text) === undefined
    const value = isPlain ? text : secretOf(draft, members, { member, name: variableOf(member, to) })
    if (value !== undefined) options[to] = value
  }
  // Its API of before v1 has the name of the deployment in the path.
  if (options.apiVersion !== undefined && !/^(v1|preview|latest)$/.test(String(options.apiVersion))) {
    options.deploymentUrls = true
  }
  return Object.keys(options).length === 0 ? undefined : options
}

/** The variable that a preset reads where the source names no key; undefined: it needs none, or is called elsewhere. */
export function presetKey(draft: Draft, { preset, base_url }: Tree, path: string): string | undefined {
  const row = typeof preset === 'string' ? PRESETS[preset] : undefined
  const variable = row?.local || base_url !== undefined ? undefined : row?.key_env[0]
  return variable === undefined ? undefined : draft.secret('', { path, name: '', variable })
}
