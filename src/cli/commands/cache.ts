/** `gatehouse cache`: purges the response cache. */
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'

const HELP = `Usage: gatehouse cache <purge> [options]

Works on a running gateway (--url), or on its store.

Commands:
  purge              use no cached response any more
      --model <id>           only the responses of this model, by its full id
      --project <project>    only the responses to this project: its id or its name

Options:
${OPTIONS_HELP}

Examples:
  gatehouse cache purge
  gatehouse cache purge --model acme/large
`

export const run = commandOf('cache', HELP, {
  purge: { flags: { model: 'text', project: 'text' }, run: purge },
})

async function purge({ given, api, projects }: Work) {
  const which = given.text('project')
  const order = {
    model: given.text('model'),
    project_id: which === undefined ? undefined : (await projects.choose(which)).project_id,
  }
  const { model, project_id, entries } = (await api.call('/cache/purge', { method: 'POST', body: order })).body
  const name = model ?? project_id
  const whose = name === null ? 'The response cache' : `The response cache of ${name}`
  const text = () => `${whose} is purged${entries === null ? '' : `: ${entries} responses are deleted`}.\n`
  return { data: { model, project_id, entries }, text }
}
