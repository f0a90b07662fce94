/** What the help of commands says of options that several have, and what they say of wrong arguments. */
import { expect, test } from 'bun:test'
import { run as importFrom } from '../src/cli/commands/import.ts'
import { run as models } from '../src/cli/commands/models.ts'
import { run as route } from '../src/cli/commands/route.ts'
import { run as token } from '../src/cli/commands/token.ts'
import { run as serve } from '../src/cli/serve/serve.ts'
import { collectingTerminal } from './kit/terminal.ts'

test.each(Object.entries({ models, route, serve, token }))(
  'the help of `%s` names all defaults of --data-dir',
  async (_, run) => {
    const { terminal, printed } = collectingTerminal({ cwd: '/', environment: {} })
    expect(await run(['--help'], terminal)).toBe(0)
    expect(printed.out).toMatch(/data directory \(default: GATEHOUSE_DATA_DIR, data_dir of the file, \.\/data\)/)
  },
)

test.each([
  [
    ['litelm'],
    'the gateway to import from: found "litelm", must be one of litellm, new-api, one-api, bifrost, portkey; did you mean "litellm"?',
  ],
  [
    ['litelm', 'config.yaml'],
    'the gateway to import from: found "litelm", must be one of litellm, new-api, one-api, bifrost, portkey; did you mean "litellm"?',
  ],
  [['litellm'], 'needs its configuration, database or address'],
])('`import` with %j says what is wrong', async (args, message) => {
  const { terminal } = collectingTerminal({ cwd: '/', environment: {} })
  await expect(importFrom(args, terminal)).rejects.toThrow(message)
})
