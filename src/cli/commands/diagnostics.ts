/** `gatehouse diagnostics`: the state of a gateway in one file, without secrets. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { surroundings } from '../../admin/routes/diagnostics.ts'
import { ConfigError } from '../../config/check/problem.ts'
import type { ConfigSource } from '../../config/edit/source.ts'
import { systemClock, unixSeconds } from '../../kit/clock.ts'
import { openStore } from '../../store/open-store.ts'
import { API_FLAGS, API_OPTIONS_HELP, connectedApi } from '../admin-api.ts'
import { type Arguments, STORE_FLAGS, STORE_FLAGS_HELP } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import { locateStore } from '../store-location.ts'
import type { Terminal } from '../terminal.ts'
import { fileSource } from './config.ts'
import { VERSION } from './version.ts'

const HELP = `Usage: gatehouse diagnostics [options]

Writes the state of a gateway into one JSON file, to be sent to support. Of a running gateway (--url): versions, the
process, readiness, providers and models with their health, the configuration, the newest failed requests without
contents, and the metrics. Without one: versions, the configuration or what is wrong with it, and
whether the store can be opened. Read it before you send it: it names your models, providers and hosts.

Options:
  --output <file>    write to this file; - for standard output (default: gatehouse-diagnostics.json)
${API_OPTIONS_HELP}
${STORE_FLAGS_HELP}
  --json             print {"file": ...} as one line of JSON

Examples:
  gatehouse diagnostics --url http://127.0.0.1:8787
  gatehouse diagnostics --config /etc/gatehouse/gatehouse.yaml --output - | jq .configuration
`

const FLAGS = { output: 'text', ...API_FLAGS, ...STORE_FLAGS } as const

export const run = plainCommand('diagnostics', HELP, { flags: FLAGS, run: diagnose })

async function diagnose(given: Arguments, terminal: Terminal) {
  const api = connectedApi(given, terminal)
  const body = api ? (await api.call('/diagnostics')).body : await withoutGateway(given, terminal)
  const text = `${JSON.stringify(body, undefined, 2)}\n`
  const name = given.text('output') ?? 'gatehouse-diagnostics.json'
  if (name === '-') {
    terminal.out(text)
    return 0
  }
  const file = resolve(terminal.cwd, name)
  try {
    writeFileSync(file, text, { mode: 0o600 })
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string }
    throw new Error(`${file} cannot be written: ${NOT_WRITTEN[code] ?? message}`)
  }
  return { data: { file }, text: () => `${file} is written. Read it before you send it.\n` }
}

const NOT_WRITTEN: Record<string, string> = {
  ENOENT: 'there is no such directory',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  EROFS: 'it is read-only',
}

async function withoutGateway(given: Arguments, terminal: Terminal): Promise<Record<string, unknown>> {
  return {
    made_at: unixSeconds(systemClock),
    ...surroundings({ version: VERSION, environment: terminal.environment }),
    store: await storeState(given, terminal),
    configuration: settingsOrProblems(fileSource(given, terminal)),
  }
}

function settingsOrProblems(source: ConfigSource): unknown {
  try {
    return source.show()
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems }
    throw error
  }
}

/** Its messages name no password. */
async function storeState(given: Arguments, terminal: Terminal): Promise<Record<string, unknown>> {
  try {
    const { url, exists, mode, name } = locateStore(given, terminal)
    if (!exists) return { place: name, is_there: false }
    const store = await openStore({ url, mode })
    try {
      return { place: name, is_there: true, engine: store.engine }
    } finally {
      await store.close()
    }
  } catch (error) {
    return { is_there: true, unavailable: error instanceof Error ? error.message : String(error) }
  }
}
