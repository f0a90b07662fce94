/** What the help of the commands says of options that several have. */
import { expect, test } from 'bun:test'
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
