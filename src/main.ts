/** The process: parses the command line and runs the command. */
import { UsageError, unknownCommand } from './cli/arguments.ts'
import { json, processTerminal, type Terminal } from './cli/terminal.ts'
import { ConfigError } from './config/check/problem.ts'
import { withEnvironmentFile } from './config/load/environment-file.ts'

type Commands = Record<string, { summary: string; load: () => Promise<{ run: Run }> }>
type Run = (args: string[], terminal: Terminal) => Promise<number>

/** Each command is loaded on demand, so that `version` does not load the server. */
const COMMANDS: Commands = {
  serve: { summary: 'start the gateway', load: () => import('./cli/serve/serve.ts') },
  token: { summary: 'create, change, list, revoke and rotate tokens', load: () => import('./cli/commands/token.ts') },
  project: {
    summary: 'create, change, list and delete projects, which own tokens',
    load: () => import('./cli/commands/project.ts'),
  },
  admin: { summary: 'log in, and create, list and revoke admin tokens', load: () => import('./cli/commands/admin.ts') },
  data: { summary: 'export or erase what is recorded of an end user', load: () => import('./cli/commands/data.ts') },
  audit: { summary: 'show who changed what, and check the log', load: () => import('./cli/commands/audit.ts') },
  task: { summary: 'list, show, cancel and resume tasks', load: () => import('./cli/commands/task.ts') },
  requests: { summary: 'search the request log', load: () => import('./cli/commands/requests.ts') },
  usage: { summary: 'show what was used, and what it cost', load: () => import('./cli/commands/usage.ts') },
  budget: { summary: 'show budgets, and add credit', load: () => import('./cli/commands/budget.ts') },
  batch: { summary: 'list, show and cancel batches', load: () => import('./cli/commands/batch.ts') },
  file: { summary: 'list, show and delete files of clients', load: () => import('./cli/commands/file.ts') },
  cache: { summary: 'purge the response cache', load: () => import('./cli/commands/cache.ts') },
  ledger: { summary: 'check that the ledger adds up', load: () => import('./cli/commands/ledger.ts') },
  store: {
    summary: 'check the database, or copy it into another engine',
    load: () => import('./cli/commands/store.ts'),
  },
  backup: { summary: 'write the store into one file', load: () => import('./cli/commands/backup.ts') },
  restore: { summary: 'restore a backup into a new store', load: () => import('./cli/commands/restore.ts') },
  migrate: { summary: 'show and migrate the schema of the database', load: () => import('./cli/commands/migrate.ts') },
  models: {
    summary: 'list the catalogue, or import prices and limits',
    load: () => import('./cli/commands/models.ts'),
  },
  prices: { summary: 'compare prices with public data', load: () => import('./cli/commands/prices.ts') },
  target: {
    summary: 'take targets out of service, put them back, test and reset them',
    load: () => import('./cli/commands/target.ts'),
  },
  mcp: {
    summary: 'list and approve tools of MCP servers',
    load: () => import('./cli/commands/mcp.ts'),
  },
  route: { summary: 'explain how a request would be routed', load: () => import('./cli/commands/route.ts') },
  health: { summary: 'ask whether a gateway can serve requests', load: () => import('./cli/commands/health.ts') },
  check: { summary: 'check the configuration', load: () => import('./cli/commands/check.ts') },
  import: {
    summary: 'take over the configuration and keys of another gateway',
    load: () => import('./cli/commands/import.ts'),
  },
  config: { summary: 'show, compare and apply the configuration', load: () => import('./cli/commands/config.ts') },
  diagnostics: {
    summary: 'write the state of a running gateway into one file',
    load: () => import('./cli/commands/diagnostics.ts'),
  },
  completion: {
    summary: 'print a script that completes commands in a shell',
    load: async () => ({ run: (await import('./cli/commands/completion.ts')).completionOf(COMMANDS) }),
  },
  version: { summary: 'print the version', load: () => import('./cli/commands/version.ts') },
}

const HELP = `Usage: gatehouse <command> [options]

A self-hosted gateway to hosted generative models.

Commands:
${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(11)} ${summary}`)
  .join('\n')}

Each command has --help, and --json for output that a program can read.

Examples:
  gatehouse serve                           start on http://127.0.0.1:8787
  gatehouse serve --port 9000
  gatehouse token create --name laptop --models 'sandbox/*'
`

async function main(args: string[], terminal: Terminal): Promise<number> {
  const [first, ...rest] = args
  if (first === undefined || first === '--help' || first === '-h') return help([], terminal)
  if (first === 'help') return help(rest, terminal)
  if (first === '--version' || first === '-v') return runCommand('version', rest, terminal)
  if (first.startsWith('-')) return runCommand('serve', args, terminal)
  return runCommand(first, rest, terminal)
}

async function runCommand(name: string, args: string[], terminal: Terminal): Promise<number> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command) throw new UsageError('', unknownCommand(name, Object.keys(COMMANDS)))
  const { run } = await command.load()
  return run(args, withVariables(terminal))
}

function withVariables(terminal: Terminal): Terminal {
  const { environment: process_environment, cwd } = terminal
  const environment = withEnvironmentFile(process_environment, cwd)
  return environment === process_environment ? terminal : { ...terminal, environment, process_environment }
}

async function help([about]: string[], terminal: Terminal): Promise<number> {
  if (about !== undefined) return runCommand(about, ['--help'], terminal)
  terminal.out(HELP)
  return 0
}

/** The exit code: 2 for invalid arguments, 1 for other errors. With `--json` the message is a line of JSON on standard error. */
function fail(error: unknown, terminal: Terminal): number {
  const asJson = process.argv.includes('--json')
  const message = error instanceof Error ? error.message : String(error)
  if (asJson) {
    const problems = error instanceof ConfigError ? { problems: error.problems } : {}
    terminal.err(json({ error: { message, ...problems } }))
  } else if (error instanceof UsageError) {
    const name = ['gatehouse', error.command].filter(Boolean).join(' ')
    terminal.err(`${name}: ${message}\nSee: ${name} --help\n`)
  } else if (error instanceof ConfigError) {
    terminal.err(`${message}\n\ngatehouse: the configuration is not valid; nothing was done.\n`)
  } else {
    const stack = process.env.GATEHOUSE_LOG === 'debug' && error instanceof Error ? `${error.stack}\n` : ''
    terminal.err(`gatehouse: ${message}\n${stack}`)
  }
  return error instanceof UsageError ? 2 : 1
}

const terminal = processTerminal()
void main(process.argv.slice(2), terminal)
  .catch((error: unknown) => fail(error, terminal))
  .then((code) => {
    process.exitCode = code
    // An open handle, such as a keep-alive connection, may delay the exit by at most this long.
    setTimeout(() => process.exit(), 1000).unref()
  })
