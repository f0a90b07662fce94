/** The programs on the manual's page about clients run, and the clients read the environment variables that it names. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { manualPage } from './kit/manual.ts'
import { openPort, type Port } from './kit/served.ts'

const ROOT = join(import.meta.dir, '..')
const page = manualPage('clients.md')
const ADDRESS = 'http://127.0.0.1:8787'

let port: Port
beforeAll(async () => {
  port = await openPort()
})
afterAll(() => port.close())
const origin = () => port.url.replace(/\/v1$/, '')

/** Runs a program with this environment only, and returns its output. */
async function run(program: string, env: Record<string, string>): Promise<string> {
  const child = Bun.spawn([process.execPath, '-e', program.replaceAll(ADDRESS, origin())], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(err)
  return out
}

const programs = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, program = '']) => program)
const nameOf = (program: string) => /from '([^']+)'\n\n/.exec(program)?.[1] ?? ''

test('each family of packages has a program', () => {
  expect(programs.map(nameOf)).toEqual(['openai', '@anthropic-ai/sdk', '@google/genai', 'ai', '@langchain/openai'])
})

test.each(programs.map((program) => [nameOf(program), program]))('the program for %s runs', async (_, program) => {
  const output = await run(program, { GATEHOUSE_TOKEN: port.token })
  const answers = { openai: 2, ai: 4 }[nameOf(program)] ?? 1
  expect(output.split('simulated').length - 1).toBeGreaterThanOrEqual(answers)
})

/** The packages of older majors, which have other names here. */
const OLDER = {
  'ai 6': ['ai-6', '-3', '-2'],
  'ai 5': ['ai-5', '-2', '-1'],
} as const

test.each(Object.entries(OLDER))('the program for ai runs with %s', async (_, [ai, provider, compatible]) => {
  const program = programs
    .find((one) => nameOf(one) === 'ai')
    ?.replace("from 'ai'", `from '${ai}'`)
    .replaceAll(/'@ai-sdk\/([a-z-]+)'/g, (_name, name) => {
      return `'ai-sdk-${name}${name === 'openai-compatible' ? compatible : provider}'`
    })
  const output = await run(program ?? '', { GATEHOUSE_TOKEN: port.token })
  expect(output.split('simulated').length - 1).toBeGreaterThanOrEqual(4)
})

describe('a client configured by environment variables only', () => {
  const CLIENTS: [name: string, address: string, key: string, program: string][] = [
    [
      'openai',
      'OPENAI_BASE_URL=http://127.0.0.1:8787/v1',
      'OPENAI_API_KEY',
      `import OpenAI from 'openai'
       console.log((await new OpenAI().responses.create({ model: 'sandbox/general', input: 'Hello' })).output_text)`,
    ],
    [
      '@ai-sdk/openai',
      'OPENAI_BASE_URL=http://127.0.0.1:8787/v1',
      'OPENAI_API_KEY',
      `import { openai } from '@ai-sdk/openai'
       import { generateText } from 'ai'
       console.log((await generateText({ model: openai('sandbox/general'), prompt: 'Hello' })).text)`,
    ],
    [
      '@langchain/openai',
      'OPENAI_BASE_URL=http://127.0.0.1:8787/v1',
      'OPENAI_API_KEY',
      `import { ChatOpenAI } from '@langchain/openai'
       console.log((await new ChatOpenAI({ model: 'sandbox/general' }).invoke('Hello')).text)`,
    ],
    ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'].map((key): [string, string, string, string] => [
      '@anthropic-ai/sdk',
      'ANTHROPIC_BASE_URL=http://127.0.0.1:8787',
      key,
      `import Anthropic from '@anthropic-ai/sdk'
       const messages = [{ role: 'user', content: 'Hello' }]
       const request = { model: 'sandbox/general', max_tokens: 100, messages }
       console.log((await new Anthropic().messages.create(request)).content[0].text)`,
    ]),
    [
      '@ai-sdk/anthropic',
      'ANTHROPIC_BASE_URL=http://127.0.0.1:8787/v1',
      'ANTHROPIC_API_KEY',
      `import { anthropic } from '@ai-sdk/anthropic'
       import { generateText } from 'ai'
       console.log((await generateText({ model: anthropic('sandbox/general'), prompt: 'Hello' })).text)`,
    ],
    [
      '@google/genai',
      'GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8787',
      'GEMINI_API_KEY',
      `import { GoogleGenAI } from '@google/genai'
       const request = { model: 'sandbox/general', contents: 'Hello' }
       console.log((await new GoogleGenAI({}).models.generateContent(request)).text)`,
    ],
  ]

  test.each(CLIENTS)('%s reads %s and %s', async (name, address, key, program) => {
    const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${address}\``)) ?? ''
    expect(row).toContain(`\`${name}\``)
    expect(row).toContain(`\`${key}\``)
    const [variable = '', value = ''] = address.split('=')
    const env = { [variable]: value.replace(ADDRESS, origin()), [key]: port.token }
    expect(await run(program, env)).toContain('simulated')
  })
})
