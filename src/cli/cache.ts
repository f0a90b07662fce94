/** `gatehouse cache`: purges the response cache. */
import { purgeStore } from '../cache/purges.ts'
import { systemClock } from '../kit/clock.ts'
import { type Action, type RemoteWork, runAction, STORE_OPTIONS_HELP, type Work } from './accounts.ts'
import { API_OPTIONS_HELP } from './admin-api.ts'
import { json, type Terminal } from './terminal.ts'

const HELP = `Usage: gatehouse cache <purge> [options]

Works on a running gateway (--url), or on its store.

Commands:
  purge              use no cached response any more: running gateways see it within a second. Those of the database are
                     deleted; those in Valkey go at the end of their time
      --model <id>           only the responses of this model, by its full id

Options:
${API_OPTIONS_HELP}
${STORE_OPTIONS_HELP}

Examples:
  gatehouse cache purge
  gatehouse cache purge --model acme/large
`

const ACTIONS: Record<string, Action> = {
  purge: { flags: { model: 'text' }, positionals: [], run: purge, remotely: purgeRemotely },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'cache', help: HELP, actions: ACTIONS }, args, terminal)

async function purge({ given, store, terminal, by }: Work): Promise<number> {
  const model = given.text('model')
  const entries = await purgeStore(store.cachedAnswers, model, {
    ...by,
    at_ms: systemClock.now(),
    action: 'cache.purge',
    object_type: 'cache',
    object_id: model ?? '',
  })
  return show({ model: model ?? null, entries }, { given, terminal })
}

async function purgeRemotely({ given, api, terminal }: RemoteWork): Promise<number> {
  const model = given.text('model')
  const { body } = await api.call('/cache/purge', { method: 'POST', body: model === undefined ? {} : { model } })
  return show(body as Purged, { given, terminal })
}

type Purged = { model: string | null; entries: number | null }

function show({ model, entries }: Purged, { given, terminal }: Pick<Work, 'given' | 'terminal'>): number {
  if (given.has('json')) terminal.out(json({ model, entries }))
  else {
    const whose = model === null ? 'The response cache' : `The response cache of ${model}`
    terminal.out(`${whose} is purged${entries === null ? '' : `: ${entries} responses are deleted`}.\n`)
  }
  return 0
}
