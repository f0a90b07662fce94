/** `gatehouse cache`: purges the response cache. */
import { type Action, runAction, STORE_OPTIONS_HELP, type Work } from '../accounts.ts'
import { API_OPTIONS_HELP } from '../admin-api.ts'
import { json, type Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse cache <purge> [options]

Works on a running gateway (--url), or on its store.

Commands:
  purge              use no cached response any more
      --model <id>           only the responses of this model, by its full id
      --project <id>         only the responses to this project

Options:
${API_OPTIONS_HELP}
${STORE_OPTIONS_HELP}

Examples:
  gatehouse cache purge
  gatehouse cache purge --model acme/large
`

const ACTIONS: Record<string, Action> = {
  purge: { flags: { model: 'text', project: 'text' }, positionals: [], run: purge },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'cache', help: HELP, actions: ACTIONS }, args, terminal)

async function purge({ given, api, terminal }: Work): Promise<number> {
  const order = { model: given.text('model'), project_id: given.text('project') }
  const { model, project_id, entries } = (await api.call('/cache/purge', { method: 'POST', body: order })).body
  if (given.has('json')) terminal.out(json({ model, project_id, entries }))
  else {
    const name = model ?? project_id
    const whose = name === null ? 'The response cache' : `The response cache of ${name}`
    terminal.out(`${whose} is purged${entries === null ? '' : `: ${entries} responses are deleted`}.\n`)
  }
  return 0
}
