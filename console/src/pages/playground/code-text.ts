/** Writes a request as code: curl, Python or TypeScript, with the client of its API. */
import type { Body } from './chat-body.ts'
import { type Dialect, inDialect } from './dialects.ts'

export const LANGUAGES = ['curl', 'Python', 'TypeScript'] as const
export type Language = (typeof LANGUAGES)[number]

type CodeParts = { origin: string; dialect: Dialect; language: Language; body: Body }

/** Files are left out of the code: in their place stands what belongs there. */
const LONGEST_DATA = 200

export function codeOf({ origin, dialect, language, body: chat }: CodeParts): string {
  const { path, body } = inDialect(dialect, chat)
  const short = shortened(body) as Body
  if (language === 'curl') return curl(`${origin}${path}`, short)
  return language === 'Python' ? PYTHON[dialect](origin, short, chat) : TYPESCRIPT[dialect](origin, short, chat)
}

export const curl = (address: string, body: unknown): string => `curl ${address} \\
  -H "Authorization: Bearer $GATEHOUSE_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '${json(body).replaceAll("'", "'\\''")}'`

export const json = (value: unknown): string => JSON.stringify(value, null, 2)
export const text = (value: string): string => JSON.stringify(value)

type Writer = (origin: string, body: Body, chat: Body) => string

export const openaiPython =
  (call: string, read: string) =>
  (origin: string, body: Body): string =>
    `import os
from openai import OpenAI

client = OpenAI(base_url=${text(`${origin}/v1`)}, api_key=os.environ["GATEHOUSE_TOKEN"])
answer = client.${call}(
${keywords(body)}
)
print(${read})`

const PYTHON: Record<Dialect, Writer> = {
  chatcompat: openaiPython('chat.completions.create', 'answer.choices[0].message.content'),
  responses: openaiPython('responses.create', 'answer.output_text'),
  messages: (origin, body) => `import os
from anthropic import Anthropic

client = Anthropic(base_url=${text(origin)}, auth_token=os.environ["GATEHOUSE_TOKEN"])
answer = client.messages.create(
${keywords(body)}
)
print(answer.content)`,
  contentgen: (origin, body, { model }) => `import os
from google import genai

client = genai.Client(
    api_key=os.environ["GATEHOUSE_TOKEN"],
    http_options={"base_url": ${text(origin)}},
)
answer = client.models.generate_content(
${keywords(genaiRequest(body, model))}
)
print(answer.text)`,
}

export const openaiTypeScript =
  (call: string, read: string) =>
  (origin: string, body: Body): string =>
    `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: ${text(`${origin}/v1`)}, apiKey: process.env.GATEHOUSE_TOKEN })
const answer = await client.${call}(${json(body)})
console.log(${read})`

const TYPESCRIPT: Record<Dialect, Writer> = {
  chatcompat: openaiTypeScript('chat.completions.create', 'answer.choices[0]?.message.content'),
  responses: openaiTypeScript('responses.create', 'answer.output_text'),
  messages: (origin, body) => `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: ${text(origin)}, authToken: process.env.GATEHOUSE_TOKEN })
const answer = await client.messages.create(${json(body)})
console.log(answer.content)`,
  contentgen: (origin, body, { model }) => `import { GoogleGenAI } from '@google/genai'

const client = new GoogleGenAI({
  apiKey: process.env.GATEHOUSE_TOKEN,
  httpOptions: { baseUrl: ${text(origin)} },
})
const answer = await client.models.generateContent(${json(genaiRequest(body, model))})
console.log(answer.text)`,
}

/** The clients of this API have all settings in one member, `config`. */
function genaiRequest({ contents, systemInstruction, tools, generationConfig }: Body, model: unknown): Body {
  const config = {
    ...(systemInstruction !== undefined && { systemInstruction }),
    ...(generationConfig as object | undefined),
    ...(tools !== undefined && { tools }),
  }
  return { model, contents, ...(Object.keys(config).length > 0 && { config }) }
}

const keywords = (body: Body): string =>
  Object.entries(body)
    .map(([name, value]) => `    ${name}=${python(value, 1)},`)
    .join('\n')

/** A literal of Python. */
export function python(value: unknown, depth: number): string {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const [start, end] = Array.isArray(value) ? '[]' : '{}'
  const members = Array.isArray(value)
    ? value.map((one) => python(one, depth + 1))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one, depth + 1)}`)
  if (members.length === 0) return `${start}${end}`
  const indent = '    '.repeat(depth + 1)
  return `${start}\n${members.map((one) => `${indent}${one},\n`).join('')}${'    '.repeat(depth)}${end}`
}

export function shortened(value: unknown, name = ''): unknown {
  if (typeof value === 'string') {
    const isData = value.startsWith('data:') || name === 'data'
    if (!isData || value.length <= LONGEST_DATA) return value
    return `${value.startsWith('data:') ? value.slice(0, value.indexOf(',') + 1) : ''}BASE64_OF_THE_FILE`
  }
  if (Array.isArray(value)) return value.map((one) => shortened(one))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shortened(one, key)]))
}
