/**
 * Records real answers of a provider as fixtures, without secrets:
 *
 *     OPENAI_API_KEY=... npm run record -- openai --model gpt-5-mini
 *     RECORD_KEY=... npm run record -- messages-compat --base-url https://api.example.com --model m
 *     COHERE_API_KEY=... npm run record -- cohere --model rerank-v3.5 --family rerank
 *
 * It sends a few small requests, which the provider may charge: whole, streamed, with a tool, with a model that does not
 * exist, with a wrong key. The files are test/fixtures/<kind>/recorded-*; read them before you commit them.
 */
import { parseArgs } from 'node:util'
import { PROVIDER_KINDS, type ProviderKind } from '../src/config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { PRESETS } from '../src/providers/presets.ts'
import { FAMILIES } from './record/calls.ts'
import { recordProvider } from './record/record-provider.ts'
import { writeRecording } from './record/write-recording.ts'

const USAGE =
  'npm run record -- <kind or preset> --model <model> [--family <family>] [--base-url <url>] [--out <directory>]'

try {
  await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string' },
      family: { type: 'string' },
      'base-url': { type: 'string' },
      out: { type: 'string' },
    },
  })
  const [name] = positionals
  if (name === undefined || values.model === undefined) throw new Error(`Usage: ${USAGE}`)
  const family = FAMILIES.find((one) => one === values.family)
  if (values.family !== undefined && family === undefined)
    throw new Error(`--family is "${values.family}"; known are ${FAMILIES.join(', ')}.`)
  const config = configOf(name, values['base-url'])
  const recording = await recordProvider({ config, model: values.model, family, environment: process.env })
  const names = writeRecording({ recording, source: name, model: values.model, out: values.out })
  for (const written of names) process.stdout.write(`${written}\n`)
  for (const problem of recording.problems) process.stderr.write(`Not as expected: ${problem}\n`)
  if (recording.problems.length > 0) process.exitCode = 1
}

function configOf(name: string, base_url: string | undefined): ProviderConfig {
  const key = process.env.RECORD_KEY
  const more = { ...(base_url === undefined ? {} : { base_url }), ...(key ? { key } : {}) }
  if (isKind(name)) return { kind: name, ...more }
  if (Object.hasOwn(PRESETS, name)) return { preset: name, ...more }
  throw new Error(
    `"${name}" is neither a kind (${PROVIDER_KINDS.join(', ')}) nor a preset (${Object.keys(PRESETS).join(', ')}).`,
  )
}

function isKind(name: string): name is ProviderKind {
  return PROVIDER_KINDS.some((kind) => kind === name)
}
