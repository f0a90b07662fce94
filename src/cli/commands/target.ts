/** `gatehouse target`: takes providers, keys and targets out of service and puts them back, tests and resets them. */
import type { ProviderReport } from '../../providers/ask-provider.ts'
import type { Override, OverrideState } from '../../store/admin/override-store.ts'
import { type Action, commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { type AdminApi, GatewayRefusal } from '../admin-api.ts'
import { UsageError } from '../arguments.ts'
import { headedTable } from '../table.ts'
import { onlineTable } from './check-online.ts'

const HELP = `Usage: gatehouse target <list | drain | disable | restore | test | reset> <name> [options]

Works on a running gateway (--url), or on its store; test and reset need a running gateway.
A name is a provider (acme), one of its keys (acme#spare), one model at it (acme/large) or that with one key
(acme/large#spare). What is set survives restarts.

Commands:
  list               show what is set, by whom and since when
  drain <name>       take it out of service: no new calls; open calls end, and tasks go on
  disable <name>     the same, and its tasks wait until it is restored
  restore <name>     put it back into service; a weight that was set stays
  test <name>        ask the provider for its list of models, free of charge; exits with 1 if it fails
  reset <name>       forget ejections, cooldowns and refused keys, in the process that answers

Options:
${OPTIONS_HELP}

Examples:
  gatehouse target drain acme/large
  gatehouse target restore acme/large
  gatehouse target test 'acme#spare' --url http://127.0.0.1:8787
`

const NAME = ['the name of a provider, a key or a target']

/** Sets a state on a running gateway or on the store. */
const setting = (state: OverrideState): Action => ({
  positionals: NAME,
  async run(work) {
    const named = namedIn(work)
    const { body } = await work.api.call(pathOf(named), { method: 'PATCH', body: { state } })
    const where = work.store ? ' Gateways on this store that have it see it within a second.' : ''
    return { data: body, text: () => `${TEXTS[state](named.name)}${where}\n` }
  },
})

const TEXTS: Record<OverrideState, (name: string) => string> = {
  drained: (name) => `${name} is drained: it gets no new calls.`,
  disabled: (name) => `${name} is disabled: it gets no new calls, and its tasks wait.`,
}

export const run = commandOf('target', HELP, {
  list: { run: list },
  drain: setting('drained'),
  disable: setting('disabled'),
  restore: { positionals: NAME, run: restore },
  test: { positionals: NAME, only_on: 'gateway', run: test },
  reset: { positionals: NAME, only_on: 'gateway', run: reset },
})

type Named = Pick<Override, 'kind' | 'name'>

function namedIn({ given }: Work): Named {
  const [name = ''] = given.positionals
  return { kind: name.includes('/') ? 'target' : name.includes('#') ? 'key' : 'provider', name }
}

const pathOf = ({ kind, name }: Named): string =>
  `/overrides/${kind}/${name.split('/').map(encodeURIComponent).join('/')}`

const nothingSet = ({ name }: Named): Error =>
  new Error(`Nothing is set for ${JSON.stringify(name)}. See: gatehouse target list`)

async function restore(work: Work) {
  const named = namedIn(work)
  await work.api.call(pathOf(named)).catch((error: unknown) => {
    throw error instanceof GatewayRefusal && error.status === 404 ? nothingSet(named) : error
  })
  const { body } = await work.api.call(pathOf(named), { method: 'PATCH', body: { state: null } })
  return { data: body, text: () => `${named.name} is in service, as configured.\n` }
}

async function list({ terminal, api }: Work) {
  const overrides = (await api.all('/overrides')) as Override[]
  const text = () => {
    if (overrides.length === 0) return 'Everything is in service, as configured.\n'
    const rows = overrides.map(({ kind, name, state, weight, set_by, set_at }) => [
      kind,
      name,
      state ?? '-',
      weight === null ? '-' : String(weight),
      set_by,
      new Date(set_at * 1000).toISOString().slice(0, 19),
    ])
    return headedTable(['KIND', 'NAME', 'STATE', 'WEIGHT', 'BY', 'SINCE'], rows, terminal)
  }
  return { data: { overrides }, text }
}

const postTo = (api: AdminApi, provider: string, action: string, body: object) =>
  api.call(`/providers/${encodeURIComponent(provider)}/${action}`, { method: 'POST', body })

/** The parts of a name: a provider, and one of its keys. */
function partsOf(name: string): { provider: string; key: string | undefined } {
  const [target = '', key] = name.split(/#(?=[^#]*$)/)
  return { provider: target.split('/', 1)[0] ?? '', key }
}

async function test(work: Work) {
  const { terminal, api } = work
  const { provider, key } = partsOf(namedIn(work).name)
  const report = (await postTo(api, provider, 'test', key === undefined ? {} : { key })).body as ProviderReport
  return { data: report, text: () => onlineTable([report], terminal), code: report.result === 'failed' ? 1 : 0 }
}

async function reset(work: Work) {
  const { kind, name } = namedIn(work)
  if (kind === 'key') throw new UsageError('target reset', `needs a provider or a target, not a key: ${name}`)
  const { provider } = partsOf(name)
  const { body } = await postTo(work.api, provider, 'reset', kind === 'target' ? { target: name } : {})
  const count = Number(body.reset)
  const targets = `${count} ${count === 1 ? 'target' : 'targets'}`
  return { data: body, text: () => `${targets} of ${provider} had a state, which is forgotten.\n` }
}
